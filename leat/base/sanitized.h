// LEAT_IS_SANITIZED is defined if a sanitizer's heap and mappings are in use.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LEAT_IS_SANITIZED  // GCC says so,
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LEAT_IS_SANITIZED  // and clang.
#endif
#endif
