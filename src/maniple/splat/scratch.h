// Memory that a thread draws with, and what is kept of a still camera.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>

// One Gaussian as a picture shows it, 64 bytes. Its alpha at an offset (dx, dy) in pixels is
// 2^(power - bend dy dy - a d d) with d = dx - slope dy: nothing large is subtracted from anything.
struct alignas(64) Splat {
  float x, y, a, slope, bend, power;
  float red, green, blue;
  float near, near_x, near_y, spread;  // inverse depth, its slope per pixel, how far it may go
  int32_t label;
  int16_t x0, x1, y0, y1;  // pixels that it may cover
};

// Blocks side by side that a splat may touch.
struct Strip {
  uint32_t splat;
  uint16_t first, width;
};

// One still Gaussian in one pixel, with what is in front of it, in numbers of 16 bits: a layer has
// half a million. Its depth is exact, or a splat that moves would be drawn behind what it hides.
struct Fragment {
  float near;  // inverse depth of the Gaussian; 0: behind all
  uint16_t red, green, blue, root;  // in front of it; the root is that of the transmittance
};

// What pictures of more than colours need of a fragment.
struct Detail {
  float depth;  // in front of it
  int32_t label;
};

// A fragment among which another renderer's surfaces are shown, which takes differences of sums.
struct ExactFragment {
  float near, transmittance, red, green, blue, depth;  // the last five: in front of it
  int32_t label;
  float near_here;  // inverse depth of its surface in this pixel
};

// An array that grows.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  ~Buffer() { std::free(at_); }
  // Inlined, so that no variant of a kernel can be linked into the other.
  inline __attribute__((always_inline)) T* reserve(size_t count) {
    if (count > size_) {
      std::free(at_);
      at_ = nullptr;
      size_ = 0;
      const size_t bytes = (count * sizeof(T) + 127) / 64 * 64;
      at_ = (T*)std::aligned_alloc(64, bytes);
      if (!at_) throw std::bad_alloc();
      size_ = count;
    }
    return at_;
  }
  inline __attribute__((always_inline)) T* get() const { return at_; }
  size_t bytes() const { return size_ * sizeof(T); }

 private:
  T* at_ = nullptr;
  size_t size_ = 0;
};

// For each visible Gaussian: its splat, its number, and how bright light makes it.
struct Scratch {
  Buffer<Splat> splats;
  Buffer<uint32_t> keys, order;
  Buffer<uint64_t> words, other_words;
  Buffer<int32_t> source;
  Buffer<float> shade;
  Buffer<char> blocks;
  Buffer<Strip> strips;
  Buffer<uint32_t> row_start, row_end;  // of strips, for each row of blocks
  Buffer<uint64_t> edges;
  Buffer<bool> is_done;
  Buffer<float> image;
};

// What does not move, through a camera that does not move either.
struct StillLayer {
  int32_t width = 0, height = 0, across = 0, down = 0;  // the last two in blocks
  // Of each pixel, the nearest first; the last one is behind all.
  Buffer<Fragment> fragments;
  Buffer<Detail> details;        // of each fragment; empty where only colours are wanted
  Buffer<ExactFragment> exact;   // instead of both, around solid surfaces
  Buffer<uint32_t> start;        // of each pixel, block by block
  float colour_step = 0.0f;
  // Of each block, what all its fragments come to, and how near the first ones are.
  Buffer<char> totals;
  Buffer<uint8_t> rgb;
  Buffer<float> depth, colour;
  Buffer<int32_t> segmentation;
  size_t bytes() const {
    return fragments.bytes() + details.bytes() + exact.bytes() + start.bytes() + totals.bytes() +
           rgb.bytes() + depth.bytes() + colour.bytes() + segmentation.bytes();
  }
};
