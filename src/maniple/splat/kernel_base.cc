// The rasteriser, four pixels at a time.
#include "order.h"
#include "scratch.h"
#include "stopwatch.h"

#define LANES 4
#include "kernel.inc"
