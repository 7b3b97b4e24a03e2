// A mutex that clang's thread-safety analysis understands.
#pragma once
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define LEAT_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define LEAT_THREAD_ANNOTATION(x)
#endif

#define LEAT_GUARDED_BY(x) LEAT_THREAD_ANNOTATION(guarded_by(x))
#define LEAT_REQUIRES(...) \
  LEAT_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define LEAT_EXCLUDES(...) LEAT_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define LEAT_NO_THREAD_SAFETY_ANALYSIS \
  LEAT_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace leat {

/// A thread that finds the mutex held looks again for about a microsecond
/// before it sleeps. Most of our mutexes are held for less, and putting a
/// thread to sleep and waking it takes longer.
class LEAT_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() LEAT_THREAD_ANNOTATION(acquire_capability()) {
    for (int looks = 0; looks < kMostLooks; ++looks) {
      if (mutex_.try_lock()) return;
      pause();
    }
    mutex_.lock();
  }
  void unlock() LEAT_THREAD_ANNOTATION(release_capability()) {
    mutex_.unlock();
  }

 private:
  /// A pause is 5 to 50 ns, by the processor.
  static constexpr int kMostLooks = 30;
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
  }

  std::mutex mutex_;
};

/// Holds a Mutex for a scope; unlock() lets go early, lock() takes it back.
/// Waits with std::condition_variable_any: `changed_.wait(lock)`.
class LEAT_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex)
      LEAT_THREAD_ANNOTATION(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() LEAT_THREAD_ANNOTATION(release_capability()) {
    if (is_held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() LEAT_THREAD_ANNOTATION(acquire_capability()) {
    mutex_.lock();
    is_held_ = true;
  }
  void unlock() LEAT_THREAD_ANNOTATION(release_capability()) {
    is_held_ = false;
    mutex_.unlock();
  }

 private:
  Mutex& mutex_;
  bool is_held_ = true;
};

using CondVar = std::condition_variable_any;

}  // namespace leat
