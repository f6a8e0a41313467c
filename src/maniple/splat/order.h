// What Python hands to the rasteriser. `structs.py` has the same fields in the same order.
#pragma once

#include <cstdint>

#include "rows.h"

enum Flag { IS_LIT = 1, IS_ANTIALIASED = 2, IS_TWO_SIDED = 4 };

// Gaussians that follow one body and are drawn in one way.
struct Group {
  int32_t body, flags, coefficients, is_still;
  float eps2d;  // pixels squared that every splat is widened by
};

// At most 128 Gaussians of one group, in a ball (group's frame).
struct Chunk {
  int32_t first, count, group;
  float centre[3], radius;
};

// Planes of `count` floats each. Gaussians are padded to eights with log2 opacity -1000.
enum Plane {
  MEAN = 0,
  FACTOR = 3,  // rotation times scales, row by row: the covariance is this times its transpose
  LOG2_OPACITY = 12,
  LARGEST = 13,  // the largest scale
  NORMAL = 14,
  SPECULAR = 17,
  EXPONENT = 18,
  EMISSION = 19,
  COLOUR = 20,  // SH, coefficient by coefficient, red, green and blue of each
};

struct Cloud {
  int32_t count, groups, chunks, lights, labels, sky, has_headlight;
  float near, far;
  const float* planes;
  const int32_t* label;
  const Group* group;
  const Chunk* chunk;
  const float* sky_table;  // (sky, 3) colours from straight down to straight up
  const int32_t* light_is_point;
  const uint8_t* light_is_active;
  const float* attenuation;  // (lights, 3)
  const float* headlight;    // ambient, diffuse, specular
};

// Where things are and how they look, of every row.
struct Rows {
  Field xpos, xmat, cam_xpos, cam_xmat, cam_fovy;
  Field light_xpos, light_xdir, light_ambient, light_diffuse, light_specular;
  Field tint;  // (labels, 6): gain and offset of colours; null: none
};

// Where the pictures of one camera go; a null pointer is a kind that nobody wants.
struct Output {
  int32_t camera;    // -1: the free view
  int32_t is_still;  // what does not move is kept
  uint8_t* rgb;
  float* depth;
  int32_t* segmentation;
  float* colour;  // (height, width, 4) floats: rgb and alpha
  // A picture of another renderer that is seen between the splats; null: none.
  const uint8_t* solid_rgb;
  const float* solid_depth;
  const int32_t* solid_segmentation;
  int64_t rgb_stride, depth_stride, segmentation_stride, colour_stride;
  int64_t solid_rgb_stride, solid_depth_stride, solid_segmentation_stride;
};

struct Order {
  int32_t rows, cameras, width, height, threads, lanes;
  const int32_t* row;
  const uint8_t* is_plain;  // of each picture's row: its still Gaussians have no tint
  const Output* output;
  FreeView free_view;
  int64_t* nanoseconds;  // (4) of project, sort, blend and finish, added up; null: not measured
};

// One picture to draw, with the pointers of its row.
struct View : CameraAndLights {
  const double *xpos, *xmat;
  const float* tint;
  int32_t width, height;
  const uint8_t* solid_rgb;
  const float* solid_depth;
  const int32_t* solid_segmentation;
};

// Where one picture goes.
struct Picture {
  uint8_t* rgb;
  float* depth;
  int32_t* segmentation;
  float* colour;
};

// What a gradient step wants and gives. Gradients are planes as those of the cloud:
// mean 3, factor 9, log2 opacity 1, albedo 3.
struct Training {
  const float* target;        // (height, width, 3), 0 to 1
  const float* target_depth;  // (height, width) metres; 0: unknown
  float depth_weight;
  float* gradient;
  float* seen;   // the largest weight of each Gaussian in a pixel so far
  double* loss;  // (2): sums of squared errors of colour and inverse depth
};

constexpr int CHUNK = 128;
constexpr int MAX_LIGHTS = 8;
constexpr int GRADIENTS = 16;

// What is kept of still Gaussians: enough for colours, for depth and labels too, or for surfaces of
// another renderer among them.
enum LayerKind { COLOURS, DETAILS, AROUND_SOLID };

struct StillLayer;
struct Scratch;

#define DECLARE_KERNEL(name)                                                                   \
  namespace name {                                                                             \
  void draw(const Cloud&, const View&, const Picture&, Scratch&, const StillLayer*, int64_t*); \
  void build(const Cloud&, const View&, Scratch&, StillLayer&, LayerKind);                     \
  void train(const Cloud&, const View&, const Training&, Scratch&);                            \
  }
DECLARE_KERNEL(lanes8)
DECLARE_KERNEL(lanes4)
