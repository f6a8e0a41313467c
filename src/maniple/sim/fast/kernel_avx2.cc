// The kernel, eight rays at a time.
#include "scene.h"

#if defined(__x86_64__)
#define LANES 8
#include "kernel.inc"
#else
// kernel_widest() never chooses it here.
namespace lanes8 {
void draw(const Scene&, const View&, Canvas&, int, bool) {}
void refine(const Scene&, const View&, Canvas&, Canvas&, int) {}
void finish(const Canvas&, uint8_t*, float*, int32_t*) {}
}  // namespace lanes8
#endif
