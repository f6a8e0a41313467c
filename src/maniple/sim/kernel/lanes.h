// Vectors of floats, LANES at a time: 8 with AVX2 and FMA, 4 on any processor.
//
// A kernel is one file, `kernel.inc`, that two sources include: one after `#define LANES 8`, one
// after `#define LANES 4`. All that it defines stands in the namespace `lanes8` or `lanes4`, so that
// nothing compiled for AVX2 is linked into the other. For the same reason standard headers are
// included here, before the instruction set changes, and kernels use no template of the standard
// library: a std::sort that was compiled for AVX2 would serve the other variant too.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#ifndef LANES
#error "define LANES as 8 or 4 before this header is included"
#endif

#if LANES == 8
#define KERNEL lanes8
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#else
#define KERNEL lanes4
#endif

#define INLINE static inline __attribute__((always_inline))
#define INLINE_MEMBER inline __attribute__((always_inline))
#define INLINE_BODY __attribute__((always_inline))  // of a lambda

namespace KERNEL {

typedef float F __attribute__((vector_size(LANES * 4)));
typedef int32_t I __attribute__((vector_size(LANES * 4)));  // also a mask: 0 or -1 in each lane
typedef float UnalignedF __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t UnalignedI __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

INLINE float least(float a, float b) { return a < b ? a : b; }
INLINE float most(float a, float b) { return a > b ? a : b; }
INLINE int least(int a, int b) { return a < b ? a : b; }
INLINE int most(int a, int b) { return a > b ? a : b; }

INLINE F load(const float* p) { return *(const UnalignedF*)p; }
INLINE I load(const int32_t* p) { return *(const UnalignedI*)p; }
INLINE I load(const uint32_t* p) { return *(const UnalignedI*)p; }
INLINE void store(float* p, F v) { *(UnalignedF*)p = v; }
INLINE void store(int32_t* p, I v) { *(UnalignedI*)p = v; }
INLINE void store(uint32_t* p, I v) { *(UnalignedI*)p = v; }

INLINE F all(float x) { return F{} + x; }
INLINE I all(int32_t x) { return I{} + x; }

#if LANES == 8
INLINE F iota() { return F{0, 1, 2, 3, 4, 5, 6, 7}; }
#else
INLINE F iota() { return F{0, 1, 2, 3}; }
#endif

INLINE F choose(I mask, F yes, F no) { return mask ? yes : no; }
INLINE I choose(I mask, I yes, I no) { return mask ? yes : no; }

// Lanes 0, 2, 4... of two vectors one after the other, or lanes 1, 3, 5...
#if LANES == 8
INLINE I every_other(I a, I b, int first) {
  return first ? __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
               : __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
}
#else
INLINE I every_other(I a, I b, int first) {
  return first ? __builtin_shufflevector(a, b, 1, 3, 5, 7)
               : __builtin_shufflevector(a, b, 0, 2, 4, 6);
}
#endif

#if defined(__x86_64__) && LANES == 8
INLINE int bits(I mask) { return _mm256_movemask_ps((__m256)mask); }
INLINE F smaller(F a, F b) { return (F)_mm256_min_ps((__m256)a, (__m256)b); }
INLINE F larger(F a, F b) { return (F)_mm256_max_ps((__m256)a, (__m256)b); }
INLINE F root(F a) { return (F)_mm256_sqrt_ps((__m256)a); }
INLINE F rough_inverse_root(F a) { return (F)_mm256_rsqrt_ps((__m256)a); }
INLINE F rough_inverse(F a) { return (F)_mm256_rcp_ps((__m256)a); }
INLINE I rounded(F a) { return (I)_mm256_cvtps_epi32((__m256)a); }
INLINE I truncated(F a) { return (I)_mm256_cvttps_epi32((__m256)a); }
INLINE F as_floats(I a) { return (F)_mm256_cvtepi32_ps((__m256i)a); }
INLINE I gather(const int32_t* table, I at) {
  return (I)_mm256_i32gather_epi32(table, (__m256i)at, 4);
}
#elif defined(__x86_64__)
INLINE int bits(I mask) { return _mm_movemask_ps((__m128)mask); }
INLINE F smaller(F a, F b) { return (F)_mm_min_ps((__m128)a, (__m128)b); }
INLINE F larger(F a, F b) { return (F)_mm_max_ps((__m128)a, (__m128)b); }
INLINE F root(F a) { return (F)_mm_sqrt_ps((__m128)a); }
INLINE F rough_inverse_root(F a) { return (F)_mm_rsqrt_ps((__m128)a); }
INLINE F rough_inverse(F a) { return (F)_mm_rcp_ps((__m128)a); }
INLINE I rounded(F a) { return (I)_mm_cvtps_epi32((__m128)a); }
INLINE I truncated(F a) { return (I)_mm_cvttps_epi32((__m128)a); }
INLINE F as_floats(I a) { return (F)_mm_cvtepi32_ps((__m128i)a); }
INLINE I gather(const int32_t* table, I at) {
  return I{table[at[0]], table[at[1]], table[at[2]], table[at[3]]};
}
#else
#define EACH_LANE(result, type, expression)         \
  type result;                                      \
  for (int k = 0; k < LANES; k++) result[k] = expression; \
  return result;
INLINE int bits(I mask) {
  int found = 0;
  for (int k = 0; k < LANES; k++) found |= (mask[k] != 0) << k;
  return found;
}
INLINE F smaller(F a, F b) { return a < b ? a : b; }
INLINE F larger(F a, F b) { return a > b ? a : b; }
INLINE F root(F a) { EACH_LANE(r, F, std::sqrt(a[k])) }
INLINE F rough_inverse_root(F a) { return 1.0f / root(a); }
INLINE F rough_inverse(F a) { return 1.0f / a; }
INLINE I rounded(F a) { EACH_LANE(r, I, (int32_t)std::lrint(a[k])) }
INLINE I truncated(F a) { EACH_LANE(r, I, (int32_t)a[k]) }
INLINE F as_floats(I a) { EACH_LANE(r, F, (float)a[k]) }
INLINE I gather(const int32_t* table, I at) { EACH_LANE(r, I, table[at[k]]) }
#undef EACH_LANE
#endif

// What stands at each place of a table, and what follows it.
INLINE void gather_pairs(const int32_t* table, I at, I& first, I& second) {
#if defined(__x86_64__) && LANES == 8
  const long long* pairs = (const long long*)table;
  const I low = (I)_mm256_i32gather_epi64(pairs, _mm256_castsi256_si128((__m256i)at), 4);
  const I high = (I)_mm256_i32gather_epi64(pairs, _mm256_extracti128_si256((__m256i)at, 1), 4);
  first = every_other(low, high, 0);
  second = every_other(low, high, 1);
#else
  first = gather(table, at);
  second = gather(table + 1, at);
#endif
}

INLINE bool any(I mask) { return bits(mask) != 0; }
INLINE bool every(I mask) { return bits(mask) == (1 << LANES) - 1; }
INLINE F magnitude(F a) { return (F)((I)a & 0x7fffffff); }
// One Newton step: about 22 correct bits.
INLINE F inverse_root(F a) {
  F y = rough_inverse_root(a);
  return y * (1.5f - 0.5f * a * y * y);
}
INLINE F inverse(F a) {
  F y = rough_inverse(a);
  return y * (2.0f - a * y);
}

INLINE F round_down(F a) {
  F t = as_floats(truncated(a));
  return t - choose(t > a, all(1.0f), all(0.0f));
}

// 2^a for -126 < a < 126, to about 2e-7 relative.
INLINE F power_of_two(F a) {
  a = smaller(larger(a, all(-126.0f)), all(126.0f));
  F whole = round_down(a + 0.5f);
  F x = a - whole;
  F p = all(1.535336188319500e-4f);
  p = p * x + 1.339887440266574e-3f;
  p = p * x + 9.618437357674640e-3f;
  p = p * x + 5.550332471162809e-2f;
  p = p * x + 2.402264791363012e-1f;
  p = p * x + 6.931472028550421e-1f;
  p = p * x + 1.0f;
  return p * (F)((truncated(whole) + 127) << 23);
}

// log2(a) for a > 0, to about 1e-6.
INLINE F logarithm_of_two(F a) {
  I raw = (I)a;
  I exponent = (raw >> 23) - 127;
  F m = (F)((raw & 0x007fffff) | 0x3f800000);
  I big = m > 1.41421356f;
  m = choose(big, m * 0.5f, m);
  exponent = exponent - big;
  F r = (m - 1.0f) / (m + 1.0f), s = r * r;
  F p = all(0.412198590f);
  p = p * s + 0.577078017f;
  p = p * s + 0.961796694f;
  p = p * s + 2.885390082f;
  return as_floats(exponent) + r * p;
}

// Lanes that are this far apart change places.
#if LANES == 8
#define SWAPPED(a, far)                                              \
  (far == 4   ? __builtin_shufflevector(a, a, 4, 5, 6, 7, 0, 1, 2, 3) \
   : far == 2 ? __builtin_shufflevector(a, a, 2, 3, 0, 1, 6, 7, 4, 5) \
              : __builtin_shufflevector(a, a, 1, 0, 3, 2, 5, 4, 7, 6))
#else
#define SWAPPED(a, far)                                    \
  (far == 2 ? __builtin_shufflevector(a, a, 2, 3, 0, 1) \
            : __builtin_shufflevector(a, a, 1, 0, 3, 2))
#endif
INLINE float lowest(F a) {
  for (int far = LANES / 2; far > 0; far /= 2) a = smaller(SWAPPED(a, far), a);
  return a[0];
}
INLINE float highest(F a) {
  for (int far = LANES / 2; far > 0; far /= 2) a = larger(SWAPPED(a, far), a);
  return a[0];
}
#undef SWAPPED

}  // namespace KERNEL
