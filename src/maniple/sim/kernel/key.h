// A key made of all that something depends on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

// Two independent 64-bit sums: that two different scenes meet in both is not a matter of luck.
class LayerKey {
 public:
  void add(const void* data, size_t bytes) {
    const char* p = (const char*)data;
    for (; bytes >= 8; bytes -= 8, p += 8) mix(p, 8);
    if (bytes) mix(p, bytes);
  }
  bool operator==(const LayerKey& other) const { return a_ == other.a_ && b_ == other.b_; }
  struct Hash {
    size_t operator()(const LayerKey& key) const { return (size_t)key.a_; }
  };

 private:
  void mix(const char* p, size_t bytes) {
    uint64_t word = 0;
    std::memcpy(&word, p, bytes);
    a_ = (a_ ^ word) * 0x9e3779b97f4a7c15ull;
    a_ ^= a_ >> 29;
    b_ = (b_ + word) * 0xd6e8feb86659fd93ull;
    b_ ^= b_ >> 32;
  }
  uint64_t a_ = 0x243f6a8885a308d3ull, b_ = 0x13198a2e03707344ull;
};
