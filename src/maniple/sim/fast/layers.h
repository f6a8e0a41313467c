// Canvases of what does not move, kept by all that they depend on, up to a number of bytes.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <unordered_map>

#include "key.h"
#include "scene.h"

// Memory for one canvas, which grows as needed.
class CanvasMemory {
 public:
  CanvasMemory() = default;
  CanvasMemory(const CanvasMemory&) = delete;
  ~CanvasMemory() { std::free(memory_); }

  static size_t bytes_of(int width, int height, bool has_shadows) {
    const size_t plane = (size_t)(width + SLACK) * height + SLACK;
    return (4 * (plane * (has_shadows ? 3 : 2) + tiles_of(width, height)) + 63) / 64 * 64;
  }

  Canvas canvas(int width, int height, bool has_shadows) {
    const size_t bytes = bytes_of(width, height, has_shadows);
    if (bytes > size_) {
      std::free(memory_);
      memory_ = std::aligned_alloc(64, bytes);
      size_ = memory_ ? bytes : 0;
      if (!memory_) throw std::bad_alloc();
    }
    const int pitch = width + SLACK;
    const size_t plane = (size_t)pitch * height + SLACK;
    uint32_t* colour = (uint32_t*)memory_ + plane;
    uint32_t* in_shadow = has_shadows ? colour + plane : nullptr;
    float* nearer_than = (float*)(colour + plane * (has_shadows ? 2 : 1));
    const int32_t tiles = (width - 1) / TILE_WIDE + 1;
    return {width,   height, pitch, (float*)memory_, colour, in_shadow, nullptr, {}, nearer_than,
            tiles};
  }

 private:
  static size_t tiles_of(int width, int height) {
    return (size_t)((width - 1) / TILE_WIDE + 1) * ((height - 1) / TILE_TALL + 1);
  }

  void* memory_ = nullptr;
  size_t size_ = 0;
};

struct KeptLayer {
  CanvasMemory memory;
  Canvas canvas;
  long used;
  int layers;             // what it shows
  bool is_drawn = false;  // not yet, or memory ran out before
};

class Layers {
 public:
  explicit Layers(size_t budget) : budget_(budget) {}

  size_t bytes() const { return bytes_; }

  // A new call of render begins.
  void begin() {
    restless_ = 2 * new_placed_ > found_placed_ ? restless_ + 1 : 0;
    new_placed_ = found_placed_ = 0;
    now_++;
  }

  // Whether what is placed stays there. Where it moves in every step, keeping it is in vain: that is
  // tried again now and then.
  bool keeps_placed() {
    if (restless_ >= 3) {
      restless_ = 0;
      paused_until_ = now_ + PAUSE;
    }
    return now_ >= paused_until_;
  }

  // Return a layer, to be drawn where it is new; null where there is no room.
  KeptLayer* find(const LayerKey& key, int layers, int width, int height, bool has_shadows,
                  bool& is_new) {
    auto found = layers_.find(key);
    const bool has_placed = layers & PLACED;
    if (found == layers_.end()) {
      const size_t bytes = CanvasMemory::bytes_of(width, height, has_shadows);
      if (!has_room(bytes, has_placed)) forget();
      if (!has_room(bytes, has_placed)) return nullptr;
      auto layer = std::make_unique<KeptLayer>();
      layer->canvas = layer->memory.canvas(width, height, has_shadows);
      layer->layers = layers;
      found = layers_.emplace(key, std::move(layer)).first;
      bytes_ += bytes;
      if (has_placed) placed_bytes_ += bytes;
      found->second->used = now_ - 1;
      new_placed_ += has_placed;
    }
    found_placed_ += has_placed;
    // Once in a call: rows may share it.
    if (!found->second->is_drawn && found->second->used != now_) is_new = true;
    found->second->used = now_;
    return found->second.get();
  }

 private:
  // Layers with what is placed are of one row each: they leave room for those of all rows.
  bool has_room(size_t bytes, bool has_placed) const {
    return bytes_ + bytes <= budget_ && (!has_placed || placed_bytes_ + bytes <= budget_ / 4);
  }

  // Drop what the last calls had no use for. Dropping what is still in use would mean to draw
  // every layer again in every call.
  void forget() {
    for (auto it = layers_.begin(); it != layers_.end();) {
      if (it->second->used >= now_ - 2) {
        ++it;
        continue;
      }
      const Canvas& c = it->second->canvas;
      const size_t bytes = CanvasMemory::bytes_of(c.width, c.height, c.in_shadow != nullptr);
      bytes_ -= bytes;
      if (it->second->layers & PLACED) placed_bytes_ -= bytes;
      it = layers_.erase(it);
    }
  }

  size_t budget_, bytes_ = 0, placed_bytes_ = 0;
  static constexpr int PAUSE = 100;  // calls
  long now_ = 0, paused_until_ = 0;
  int found_placed_ = 0, new_placed_ = 0, restless_ = 0;
  std::unordered_map<LayerKey, std::unique_ptr<KeptLayer>, LayerKey::Hash> layers_;
};
