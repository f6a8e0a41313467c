// Which variant of a kernel this processor can run. Include it in one source of a library.
#pragma once

extern "C" int kernel_widest() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 8 : 4;
#else
  return 4;
#endif
}
