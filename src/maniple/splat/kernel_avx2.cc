// The rasteriser, eight pixels at a time.
#include "order.h"
#include "scratch.h"
#include "stopwatch.h"

#if defined(__x86_64__)
#define LANES 8
#include "kernel.inc"
#else
// kernel_widest() never chooses it here.
namespace lanes8 {
void draw(const Cloud&, const View&, const Picture&, Scratch&, const StillLayer*, int64_t*) {}
void build(const Cloud&, const View&, Scratch&, StillLayer&, LayerKind) {}
void train(const Cloud&, const View&, const Training&, Scratch&) {}
}  // namespace lanes8
#endif
