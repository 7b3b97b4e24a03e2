// An error in place of the exception for memory that the system refuses.
#pragma once
#include <new>

#include "leat/base/errors.h"
#include "leat/base/result.h"

namespace leat {

/// Calls, on a thread of the engine, where nobody catches std::bad_alloc and it
/// would end the process.
///
/// Errors: as `call`; kResourceExhausted in place of std::bad_alloc
template <class Call>
Result<void> within_memory(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return exhausted(
        "the system gives this process no more memory; let it have more, or "
        "lower memory=, the batch size or the number of threads");
  }
}

}  // namespace leat
