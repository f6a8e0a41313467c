// One step of Adam for every Gaussian that a picture showed.
#pragma once

#include <cmath>
#include <cstdint>

#include "order.h"

// What is refined of a Gaussian, and how it got there.
struct Disc {
  float mean[3], turn[9];  // axes as columns
  float size[3];           // logarithms of scales
  float opacity, colour[3];
  float height;     // above the surface that it was put on
  float unit;       // its size when it was put there
  float pull;       // how strongly pictures have pulled at it
  int32_t is_flat;  // it keeps its normal and its thickness
  int32_t at;       // where it is in the planes
  int32_t steps;
  float slow[13], fast[13];  // of Adam: mean, size, turn, opacity, colour
};

struct Descent {
  int32_t count;
  Disc* discs;
  const float* gradient;
  float* planes;
  int64_t stride;
  float rate[5];  // of mean, size, turn, opacity and colour
  float sink, rise, narrowest;
};

inline float adam(Disc& d, int k, float gradient, float slow_part, float fast_part) {
  constexpr float SLOW = 0.9f, FAST = 0.99f;
  d.slow[k] = SLOW * d.slow[k] + (1.0f - SLOW) * gradient;
  d.fast[k] = FAST * d.fast[k] + (1.0f - FAST) * gradient * gradient;
  return d.slow[k] * slow_part / (std::sqrt(d.fast[k] * fast_part) + 1e-15f);
}

inline float bounded(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

// Put a Gaussian where the rasteriser reads it.
inline void write_disc(const Disc& d, float* planes, int64_t stride) {
  float scale[3], *p = planes + d.at;
  for (int k = 0; k < 3; k++) scale[k] = std::exp(d.size[k]);
  for (int k = 0; k < 3; k++) p[k * stride] = d.mean[k];
  for (int j = 0; j < 3; j++)
    for (int k = 0; k < 3; k++) p[(FACTOR + 3 * j + k) * stride] = d.turn[3 * j + k] * scale[k];
  p[LOG2_OPACITY * stride] = -std::log2(1.0f + std::exp(-d.opacity));
  int thin = 0, thick = 0;
  for (int k = 1; k < 3; k++) {
    thin = scale[k] < scale[thin] ? k : thin;
    thick = scale[k] > scale[thick] ? k : thick;
  }
  p[LARGEST * stride] = scale[thick];
  thin = d.is_flat ? 2 : thin;
  for (int j = 0; j < 3; j++) p[(NORMAL + j) * stride] = d.turn[3 * j + thin];
  for (int k = 0; k < 3; k++) p[(COLOUR + k) * stride] = (d.colour[k] - 0.5f) / 0.28209479f;
}

inline void turn_disc(Disc& d, const float* by) {
  // A quaternion of a small turn, about the disc's own axes.
  float q[4] = {1.0f, 0.5f * by[0], 0.5f * by[1], 0.5f * by[2]};
  const float length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  for (float& c : q) c /= length;
  const float w = q[0], x = q[1], y = q[2], z = q[3];
  const float r[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
                      2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                      2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)};
  for (int j = 0; j < 3; j++) {
    float row[3];
    for (int k = 0; k < 3; k++)
      row[k] = d.turn[3 * j] * r[k] + d.turn[3 * j + 1] * r[3 + k] + d.turn[3 * j + 2] * r[6 + k];
    for (int k = 0; k < 3; k++) d.turn[3 * j + k] = row[k];
  }
}

inline void descend_disc(const Descent& order, Disc& d) {
  float g[GRADIENTS], any = 0.0f;
  for (int k = 0; k < GRADIENTS; k++) {
    g[k] = order.gradient[k * order.stride + d.at];
    any += std::fabs(g[k]);
  }
  if (!(any > 0.0f) || !(any < 1e30f)) return;  // it was not seen
  d.steps++;
  const float slow = 1.0f / (1.0f - std::pow(0.9f, (float)d.steps));
  const float fast = 1.0f / (1.0f - std::pow(0.99f, (float)d.steps));
  float to_size[3], to_axis[9], to_turn[3] = {};
  for (int k = 0; k < 3; k++) {
    const float scale = std::exp(d.size[k]);
    to_size[k] = 0.0f;
    for (int j = 0; j < 3; j++) {
      to_size[k] += g[3 + 3 * j + k] * d.turn[3 * j + k] * scale;
      to_axis[3 * j + k] = g[3 + 3 * j + k] * scale;
    }
  }
  if (d.is_flat) to_size[2] = 0.0f;
  for (int j = 0; j < 3; j++) {
    const float *a = to_axis + 3 * j, *t = d.turn + 3 * j;
    to_turn[2] += a[0] * t[1] - a[1] * t[0];
    if (d.is_flat) continue;
    to_turn[0] += a[1] * t[2] - a[2] * t[1];
    to_turn[1] += a[2] * t[0] - a[0] * t[2];
  }
  float by[3], up = 0.0f, length2 = 0.0f;
  for (int k = 0; k < 3; k++) {
    const float scaled = g[k] * d.unit;
    length2 += scaled * scaled;
    by[k] = -order.rate[0] * d.unit * adam(d, k, scaled, slow, fast);
    up += by[k] * d.turn[3 * k + 2];
  }
  d.pull += std::sqrt(length2);
  if (d.is_flat) {
    const float height = bounded(d.height + up, -order.sink, order.rise);
    for (int k = 0; k < 3; k++) by[k] += (height - d.height - up) * d.turn[3 * k + 2];
    d.height = height;
  }
  for (int k = 0; k < 3; k++) {
    d.mean[k] += by[k];
    d.size[k] -= order.rate[1] * adam(d, 3 + k, to_size[k], slow, fast);
    if (!d.is_flat || k < 2) d.size[k] = d.size[k] > order.narrowest ? d.size[k] : order.narrowest;
    by[k] = -order.rate[2] * adam(d, 6 + k, to_turn[k], slow, fast);
    d.colour[k] -= order.rate[4] * adam(d, 10 + k, g[13 + k], slow, fast);
    d.colour[k] = bounded(d.colour[k], 0.0f, 1.5f);
  }
  const float opaque = 1.0f / (1.0f + std::exp(-d.opacity));
  const float to_logit = g[12] * (1.0f - opaque) * 1.44269504f;
  d.opacity = bounded(d.opacity - order.rate[3] * adam(d, 9, to_logit, slow, fast), -6.0f, 6.0f);
  turn_disc(d, by);
  write_disc(d, order.planes, order.stride);
}
