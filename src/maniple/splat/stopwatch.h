// Processor time of the stages of a picture.
#pragma once

#include <time.h>

#include <cstdint>

class Stopwatch {
 public:
  explicit Stopwatch(int64_t* into) : into_(into) {
    if (into_) last_ = now();
  }
  // Add the time since the last call to the next stage.
  void lap() {
    if (!into_) return;
    const int64_t time = now();
    __atomic_fetch_add(into_++, time - last_, __ATOMIC_RELAXED);
    last_ = time;
  }

 private:
  static int64_t now() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
  }
  int64_t* into_;
  int64_t last_ = 0;
};
