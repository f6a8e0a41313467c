// The kernel, four rays at a time.
#include "scene.h"

#define LANES 4
#include "kernel.inc"
