// Threads that stay: a loop over pictures is shared out among them and the caller.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace kernel {

// Work that tells where memory ran out: an exception that leaves a thread ends the process.
template <class Work>
auto safely(std::atomic<int>& failed, Work work) {
  return [&failed, work](int k) {
    try {
      work(k);
    } catch (const std::bad_alloc&) {
      failed = 1;
    }
  };
}

class Pool {
 public:
  // The one pool of this process. A forked child has none of its parent's threads: it gets its own.
  static Pool& get() {
    static std::mutex making;
    static Pool* pool = nullptr;
    static pid_t owner = 0;
    static const bool is_watched = pthread_atfork(nullptr, nullptr, [] {
      // The child's copy of the lock may be held by a thread that is not there.
      new (&making) std::mutex();
    }) == 0;
    (void)is_watched;
    std::lock_guard<std::mutex> lock(making);
    if (pool == nullptr || owner != getpid()) {
      // Leaked on purpose: its threads sleep until the process ends.
      pool = new Pool();
      owner = getpid();
    }
    return *pool;
  }

  // Call `work(k)` for every k below `count`, on at most `threads` threads, the caller's included.
  void run(int count, int threads, const std::function<void(int)>& work) {
    threads = threads < count ? threads : count;
    std::unique_lock<std::mutex> mine(busy_, std::try_to_lock);
    // A second caller does its own work meanwhile: it must not wait for somebody else's pictures.
    if (threads <= 1 || !mine.owns_lock()) {
      for (int k = 0; k < count; k++) work(k);
      return;
    }
    const int helpers = grow(threads - 1);
    {
      std::lock_guard<std::mutex> lock(state_);
      work_ = &work;
      count_ = count;
      next_.store(0);
      wanted_ = helpers;
      working_ = helpers;
      round_++;
    }
    wake_.notify_all();
    take();
    std::unique_lock<std::mutex> lock(state_);
    done_.wait(lock, [this] { return working_ == 0; });
    work_ = nullptr;
  }

 private:
  int grow(int helpers) {
    while ((int)threads_.size() < helpers) {
      const int number = (int)threads_.size();
      try {
        threads_.emplace_back([this, number] { serve(number); });
      } catch (const std::system_error&) {
        break;  // no thread to be had: those that there are do the work
      }
    }
    return helpers < (int)threads_.size() ? helpers : (int)threads_.size();
  }

  void take() {
    for (int k = next_++; k < count_; k = next_++) (*work_)(k);
  }

  void serve(int number) {
    long seen = 0;
    for (;;) {
      std::unique_lock<std::mutex> lock(state_);
      wake_.wait(lock, [&] { return round_ != seen; });
      seen = round_;
      if (number >= wanted_) continue;
      lock.unlock();
      take();
      lock.lock();
      if (--working_ == 0) done_.notify_one();
    }
  }

  std::mutex busy_, state_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> threads_;
  const std::function<void(int)>* work_ = nullptr;
  std::atomic<int> next_{0};
  int count_ = 0, wanted_ = 0, working_ = 0;
  long round_ = 0;
};

}  // namespace kernel
