// Names for threads, as debuggers and `top -H` show them.
#pragma once
#include <pthread.h>

#include <string>

namespace leat {

/// Names the calling thread; Linux keeps the first 15 characters.
inline void name_this_thread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

}  // namespace leat
