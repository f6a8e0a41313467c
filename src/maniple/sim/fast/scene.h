// What Python hands to the kernels. `structs.py` has the same fields in the same order.
#pragma once

#include <cstdint>

#include "rows.h"

// What the rows' model is made of. Geoms and lights are numbered as MuJoCo numbers them.
struct Scene {
  int32_t geoms, lights, sky_width, has_headlight;
  float near, far;  // metres from the camera
  const int32_t* type;
  const uint8_t *is_visible, *layer;  // layer: one of Layer, of each geom
  const float *emission, *specular, *shininess;
  const int32_t* sky;  // six square faces, 0xBBGGRR each
  const int32_t* light_is_point;
  const uint8_t *light_is_active, *light_casts_shadow;
  const float* attenuation;  // (lights, 3)
  const float* headlight;    // ambient, diffuse, specular
};

// Where things are and how they look, of every row.
struct Rows {
  Field geom_xpos, geom_xmat, geom_size, geom_rgba;
  Field cam_xpos, cam_xmat, cam_fovy;
  Field light_xpos, light_xdir, light_ambient, light_diffuse, light_specular;
};

// Where the pictures of one camera go; a null pointer is a kind that nobody wants.
struct Output {
  int32_t camera;  // -1: the free view
  int32_t is_still;
  uint8_t* rgb;
  float* depth;
  int32_t* segmentation;
  int64_t rgb_stride, depth_stride, segmentation_stride;  // bytes from one picture to the next
};

struct Order {
  int32_t rows, cameras, width, height;
  int32_t is_fine;    // 2 x 2 rays where neighbours differ
  int32_t tolerance;  // by more grey levels than this; below zero: everywhere
  int32_t has_shadows;
  int32_t threads, lanes;
  int32_t keeps_placed;  // whether there is room for what is placed in every row
  const int32_t* row;
  const Output* output;
  FreeView free_view;
};

// One picture to draw, with the pointers of its row.
struct View : CameraAndLights {
  const double *geom_xpos, *geom_xmat, *geom_size;
  const float* geom_rgba;
};

// Which geoms stand in the light of something, as bits.
struct Blockers {
  uint64_t word[4];
};

// What is known of the light where a pixel is: it and those around it are lit, or dark, or neither.
constexpr int32_t ALL_LIT = 0, ALL_DARK = 1, MIXED = -1;

// The pixels that a canvas of four rays per pixel has: two rows of rays share a line of them.
struct Picked {
  int32_t* column;  // which pixels; null: the canvas has one ray in every pixel
  float* x;         // where their rays go, two of each pixel
  int32_t* shade;   // of the same rays: ALL_LIT, ALL_DARK or MIXED
  int32_t* start;   // of each group of pixels: which ray is its first
  int32_t groups;   // in a line, and one more
};

// Inverse depth, and colour with the geom's number plus one in the top byte, of every ray.
struct Canvas {
  int32_t width, height, pitch;
  float* inverse_depth;
  uint32_t* colour;
  uint32_t* in_shadow;  // the colours without the light that throws shadows; null: no shadows
  Blockers* blockers;   // of each square of SQUARE pixels each way; null: not known
  Picked picked;
  float* nearer_than;  // no pixel of a tile has a smaller inverse depth
  int32_t tiles;       // in a line
};

// What never moves; what stays where an episode puts it; all the rest. Pictures of the first, or of
// the first two, are kept.
enum Layer { STILL = 1, PLACED = 2, MOVING = 4, ALL = 7 };
constexpr int MAX_GEOMS = 254;
constexpr int MAX_LIGHTS = 8;  // the headlight included
constexpr int SLACK = 16;      // a vector may reach so far beyond the end of a row
constexpr int SQUARE = 8;      // pixels each way that share what may darken them
constexpr int TILE_WIDE = 32, TILE_TALL = 8;  // pixels that are hidden together

#define DECLARE_KERNEL(name)                                                                 \
  namespace name {                                                                           \
  void draw(const Scene& scene, const View& view, Canvas& canvas, int layers, bool is_new);  \
  void refine(const Scene& scene, const View& view, Canvas& canvas, Canvas& fine,            \
              int tolerance);                                                                \
  void finish(const Canvas& canvas, uint8_t* rgb, float* depth, int32_t* segmentation);      \
  }
DECLARE_KERNEL(lanes8)
DECLARE_KERNEL(lanes4)
