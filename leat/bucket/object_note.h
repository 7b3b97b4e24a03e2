// Our notes on an object beside its bytes: its ETag and headers, in the
// extended attributes of its file.
#pragma once
#include <cstddef>
#include <string>

#include "leat/bucket/folder.h"

namespace leat {

/// The most bytes of ObjectState::headers that a note holds.
inline constexpr std::size_t kMostHeaderBytes = 4096;

/// Writes both. On a file system without extended attributes nothing is kept,
/// and the ETag is made from size and time as for any other file.
/// REQUIRES: the headers are of kMostHeaderBytes at most.
/// Errors: kResourceExhausted: the file system has no room for the headers.
Result<void> write_object_note(int descriptor, const ObjectState& state);

/// Fills `etag` and `headers` of `state`, which has the file's size and time.
/// `descriptor` may be -1: then `path` is read.
void read_object_note(int descriptor, const std::string& path,
                      ObjectState& state);

}  // namespace leat
