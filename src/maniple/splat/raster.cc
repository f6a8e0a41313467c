// Draw many rows through many cameras, on several threads, keeping what does not move.
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "descend.h"
#include "key.h"
#include "order.h"
#include "pool.h"
#include "scratch.h"
#include "widest.h"

namespace {

View view_of(const Rows& rows, const Order& order, const Output& out, int at) {
  const int row = order.row[at];
  View v;
  v.xpos = rows.xpos.row<double>(row);
  v.xmat = rows.xmat.row<double>(row);
  v.tint = rows.tint.at ? rows.tint.row<float>(row) : nullptr;
  v.width = order.width;
  v.height = order.height;
  v.solid_rgb = out.solid_rgb ? out.solid_rgb + at * out.solid_rgb_stride : nullptr;
  auto shifted = [at](const void* p, int64_t stride) { return p ? (const char*)p + at * stride : nullptr; };
  v.solid_depth = (const float*)shifted(out.solid_depth, out.solid_depth_stride);
  v.solid_segmentation =
      (const int32_t*)shifted(out.solid_segmentation, out.solid_segmentation_stride);
  v.set(rows, order.free_view, row, out.camera);
  return v;
}

Picture picture_of(const Output& out, int at) {
  auto shifted = [at](void* p, int64_t stride) { return p ? (char*)p + at * stride : nullptr; };
  return {(uint8_t*)shifted(out.rgb, out.rgb_stride), (float*)shifted(out.depth, out.depth_stride),
          (int32_t*)shifted(out.segmentation, out.segmentation_stride),
          (float*)shifted(out.colour, out.colour_stride)};
}

LayerKind layer_kind(const Output& out) {
  if (out.solid_depth) return AROUND_SOLID;
  return out.depth || out.segmentation || out.colour ? DETAILS : COLOURS;
}

// All that the still part of a picture depends on.
LayerKey key_of(const Cloud& cloud, const View& v, int lanes, uint64_t share, LayerKind kind) {
  LayerKey key;
  key.add(&share, sizeof share);
  // A layer is laid out in blocks, whose shape depends on the lanes.
  const int32_t size[4] = {v.width, v.height, lanes, kind};
  key.add(size, sizeof size);
  v.add_to(key, cloud.lights);
  for (int g = 0; g < cloud.groups; g++) {
    if (!cloud.group[g].is_still) continue;
    key.add(v.xpos + 3 * cloud.group[g].body, 3 * sizeof(double));
    key.add(v.xmat + 9 * cloud.group[g].body, 9 * sizeof(double));
  }
  return key;
}

Scratch& scratch() {
  static thread_local Scratch memory;
  return memory;
}

// Layers of still cameras, by all that they depend on, up to a number of bytes.
class Layers {
 public:
  explicit Layers(size_t budget) : budget_(budget) {}

  struct Kept {
    std::unique_ptr<StillLayer> layer = std::make_unique<StillLayer>();  // none: it is too large
    bool is_built = false;
    long used = 0;
  };

  size_t bytes() const {
    size_t sum = 0;
    for (const auto& [key, kept] : layers_) sum += kept->layer ? kept->layer->bytes() : 0;
    return sum;
  }
  void begin() { now_++; }
  Kept* find(const LayerKey& key) {
    const auto found = layers_.find(key);
    if (found == layers_.end()) return nullptr;
    found->second->used = now_;
    return found->second.get();
  }
  Kept* add(const LayerKey& key) {
    auto fresh = std::make_unique<Kept>();
    fresh->used = now_;
    return layers_.emplace(key, std::move(fresh)).first->second.get();
  }
  // How large the layer of one of so many still cameras may be.
  uint64_t share(int cameras) const { return budget_ / (cameras > 0 ? cameras : 1); }
  // After a failure: what was not built must not be found again.
  void drop_unbuilt() {
    for (auto it = layers_.begin(); it != layers_.end();)
      it = it->second->is_built ? std::next(it) : layers_.erase(it);
  }
  // Drop the longest unused while there is too much; what is in use now may go too, after its use.
  void trim() {
    while (bytes() > budget_ && !layers_.empty()) {
      auto oldest = layers_.begin();
      for (auto it = layers_.begin(); it != layers_.end(); ++it)
        if (it->second->used < oldest->second->used) oldest = it;
      layers_.erase(oldest);
    }
  }

 private:
  size_t budget_;
  long now_ = 0;
  std::unordered_map<LayerKey, std::unique_ptr<Kept>, LayerKey::Hash> layers_;
};

}  // namespace

extern "C" {

void* layers_new(int64_t bytes) { return new (std::nothrow) Layers((size_t)bytes); }
void layers_free(void* layers) { delete (Layers*)layers; }
int64_t layers_bytes(void* layers) { return (int64_t)((Layers*)layers)->bytes(); }

// Returns 0, or 1 where there is not enough memory.
int render(const Cloud* cloud, const Rows* rows, const Order* order, void* kept) {
  Layers* layers = (Layers*)kept;
  try {
    const int count = order->rows * order->cameras;
    std::vector<const Layers::Kept*> layer(count, nullptr);
    std::vector<std::pair<Layers::Kept*, int>> missing;
    // A layer that is too large is never used: by a rule that knows neither rows nor history, so
    // that a row has the same bits whatever else is drawn.
    int still = 0;
    for (int c = 0; c < order->cameras; c++) still += order->output[c].is_still;
    const uint64_t share = layers ? layers->share(still) : 0;
    if (layers) {
      layers->begin();
      for (int k = 0; k < count; k++) {
        const Output& out = order->output[k % order->cameras];
        if (!out.is_still || !order->is_plain[k / order->cameras]) continue;
        const View v = view_of(*rows, *order, out, k / order->cameras);
        const LayerKey key = key_of(*cloud, v, order->lanes, share, layer_kind(out));
        Layers::Kept* found = layers->find(key);
        if (!found) {
          found = layers->add(key);
          missing.push_back({found, k});
        }
        layer[k] = found;
      }
    }
    kernel::Pool& pool = kernel::Pool::get();
    std::atomic<int> failed{0};
    pool.run((int)missing.size(), order->threads, kernel::safely(failed, [&](int m) {
      const int k = missing[m].second;
      Layers::Kept& made = *missing[m].first;
      const Output& out = order->output[k % order->cameras];
      const View v = view_of(*rows, *order, out, k / order->cameras);
      const auto build = order->lanes == 8 ? lanes8::build : lanes4::build;
      Scratch building;  // not the thread's own: moving splats need less
      build(*cloud, v, building, *made.layer, layer_kind(out));
      made.is_built = true;
      if (made.layer->bytes() > share) made.layer.reset();
    }));
    if (failed) {
      layers->drop_unbuilt();
      return 1;
    }
#if defined(__GLIBC__)
    if (!missing.empty()) malloc_trim(0);  // what layers were built with
#endif
    pool.run(count, order->threads, kernel::safely(failed, [&](int k) {
      const Output& out = order->output[k % order->cameras];
      const int at = k / order->cameras;
      const View v = view_of(*rows, *order, out, at);
      const auto draw = order->lanes == 8 ? lanes8::draw : lanes4::draw;
      const StillLayer* still_part = layer[k] ? layer[k]->layer.get() : nullptr;
      draw(*cloud, v, picture_of(out, at), scratch(), still_part, order->nanoseconds);
    }));
    if (layers) layers->trim();
    return failed;
  } catch (const std::bad_alloc&) {
    if (layers) layers->drop_unbuilt();
    return 1;
  }
}

// Add the gradient of one picture. Returns 0, or 1 where there is not enough memory.
int train(const Cloud* cloud, const Rows* rows, const Order* order, const Training* training) {
  try {
    const View v = view_of(*rows, *order, order->output[0], 0);
    const auto step = order->lanes == 8 ? lanes8::train : lanes4::train;
    step(*cloud, v, *training, scratch());
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}

// Follow a gradient with every Gaussian that has one.
void descend(const Descent* order) {
  for (int k = 0; k < order->count; k++) descend_disc(*order, order->discs[k]);
}
}
