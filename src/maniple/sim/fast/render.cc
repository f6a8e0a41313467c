// Draw many rows through many cameras, on several threads, keeping what does not move.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <unordered_map>
#include <vector>

#include "layers.h"
#include "pool.h"
#include "scene.h"
#include "widest.h"

namespace {

void draw(int lanes, const Scene& s, const View& v, Canvas& c, int layers, bool is_new) {
  lanes == 8 ? lanes8::draw(s, v, c, layers, is_new) : lanes4::draw(s, v, c, layers, is_new);
}

View view_of(const Rows& rows, const Order& order, int row, int camera) {
  View v;
  v.geom_xpos = rows.geom_xpos.row<double>(row);
  v.geom_xmat = rows.geom_xmat.row<double>(row);
  v.geom_size = rows.geom_size.row<double>(row);
  v.geom_rgba = rows.geom_rgba.row<float>(row);
  v.set(rows, order.free_view, row, camera);
  return v;
}

// All that the part of a picture that is in some layers depends on.
LayerKey key_of(const Scene& scene, const View& v, int layers, int width, int height) {
  LayerKey key;
  const int32_t size[4] = {width, height, scene.geoms, layers};
  key.add(size, sizeof size);
  v.add_to(key, scene.lights);
  for (int g = 0; g < scene.geoms; g++) {
    if (!(scene.layer[g] & layers) || !scene.is_visible[g]) continue;
    key.add(v.geom_xpos + 3 * g, 3 * sizeof(double));
    key.add(v.geom_xmat + 9 * g, 9 * sizeof(double));
    key.add(v.geom_size + 3 * g, 3 * sizeof(double));
    key.add(v.geom_rgba + 4 * g, 4 * sizeof(float));
  }
  return key;
}

bool has_placed(const Scene& scene) {
  for (int g = 0; g < scene.geoms; g++)
    if (scene.is_visible[g] && scene.layer[g] == PLACED) return true;
  return false;
}

// A canvas of this thread's own, as large as the largest that it has drawn.
Canvas scratch(int width, int height, bool has_shadows) {
  static thread_local CanvasMemory memory;
  return memory.canvas(width, height, has_shadows);
}

// What refining needs, of this thread: a canvas with up to twice as many rays each way.
Canvas fine_scratch(Canvas& canvas, int lanes) {
  static thread_local CanvasMemory memory;
  static thread_local std::vector<int32_t> column, start, shade;
  static thread_local std::vector<float> x;
  static thread_local std::vector<Blockers> blockers;
  Canvas fine = memory.canvas(2 * canvas.width, 2 * canvas.height, canvas.in_shadow != nullptr);
  const size_t lines = canvas.height, groups = (canvas.width - 1) / lanes + 2;
  const size_t squares = (size_t)((canvas.width - 1) / SQUARE + 1) * ((lines - 1) / SQUARE + 1);
  column.resize(lines * canvas.pitch);
  x.resize(lines * fine.pitch);
  shade.resize(lines * fine.pitch);
  start.resize(lines * groups);
  blockers.resize(squares);
  fine.picked = {column.data(), x.data(), shade.data(), start.data(), (int32_t)groups};
  canvas.blockers = fine.blockers = blockers.data();
  return fine;
}

}  // namespace

extern "C" {

void* layers_new(int64_t bytes) { return new (std::nothrow) Layers((size_t)bytes); }
void layers_free(void* layers) { delete (Layers*)layers; }
int64_t layers_bytes(void* layers) { return (int64_t)((Layers*)layers)->bytes(); }

// Returns 0, or 1 where there is not enough memory.
int render(const Scene* scene, const Rows* rows, const Order* order, void* kept) {
  try {
    Layers* layers = (Layers*)kept;
    const int count = order->rows * order->cameras;
    const int width = order->width, height = order->height;
    std::vector<const KeptLayer*> layer(count, nullptr);
    std::vector<std::pair<KeptLayer*, int>> missing;
    if (layers) {
      layers->begin();
      const bool keeps_placed = order->keeps_placed && has_placed(*scene) && layers->keeps_placed();
      for (int k = 0; k < count; k++) {
        const Output& out = order->output[k % order->cameras];
        if (!out.is_still) continue;
        const View v = view_of(*rows, *order, order->row[k / order->cameras], out.camera);
        bool is_new = false;
        const auto find = [&](int shown) {
          return layers->find(key_of(*scene, v, shown, width, height), shown, width, height,
                              order->has_shadows, is_new);
        };
        KeptLayer* found = keeps_placed ? find(STILL | PLACED) : nullptr;
        if (!found) found = find(STILL);
        layer[k] = found;
        if (is_new) missing.push_back({found, k});
      }
    }
    kernel::Pool& pool = kernel::Pool::get();
    std::atomic<int> failed{0};
    pool.run((int)missing.size(), order->threads, kernel::safely(failed, [&](int m) {
      const int k = missing[m].second;
      const int camera = order->output[k % order->cameras].camera;
      const View v = view_of(*rows, *order, order->row[k / order->cameras], camera);
      draw(order->lanes, *scene, v, missing[m].first->canvas, missing[m].first->layers, true);
      missing[m].first->is_drawn = true;
    }));
    if (failed) return 1;
    pool.run(count, order->threads, kernel::safely(failed, [&](int k) {
      const int at = k / order->cameras;
      const Output& out = order->output[k % order->cameras];
      const View v = view_of(*rows, *order, order->row[at], out.camera);
      Canvas canvas = scratch(width, height, order->has_shadows);
      Canvas fine{};
      if (order->is_fine && out.rgb) fine = fine_scratch(canvas, order->lanes);
      if (layer[k]) {
        const Canvas& still = layer[k]->canvas;
        const size_t bytes = sizeof(float) * still.pitch * still.height;
        std::memcpy(canvas.inverse_depth, still.inverse_depth, bytes);
        std::memcpy(canvas.colour, still.colour, bytes);
        if (canvas.in_shadow) std::memcpy(canvas.in_shadow, still.in_shadow, bytes);
        draw(order->lanes, *scene, v, canvas, ALL & ~layer[k]->layers, false);
      } else {
        draw(order->lanes, *scene, v, canvas, ALL, true);
      }
      if (fine.picked.column) {
        const auto refine = order->lanes == 8 ? lanes8::refine : lanes4::refine;
        refine(*scene, v, canvas, fine, order->tolerance);
      }
      const auto finish = order->lanes == 8 ? lanes8::finish : lanes4::finish;
      finish(canvas, out.rgb ? out.rgb + at * out.rgb_stride : nullptr,
             out.depth ? (float*)((char*)out.depth + at * out.depth_stride) : nullptr,
             out.segmentation
                 ? (int32_t*)((char*)out.segmentation + at * out.segmentation_stride)
                 : nullptr);
    }));
    return failed;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}
}
