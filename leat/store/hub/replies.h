// The answers of the Hugging Face Hub, which are hostile bytes.
#pragma once
#include <string>
#include <string_view>

#include "leat/base/error.h"
#include "leat/base/result.h"
#include "leat/store/http/http_client.h"
#include "leat/store/store.h"

namespace leat {

/// Reads a page of a repository's tree: the files and folders under `prefix`.
/// Their `etag` is the hash of the content: SHA-256 of files in large file
/// storage, else that of git.
///
/// Errors:
///   kCorrupt  no such JSON or far too much of it, a size that is no number, a
///             hash that is malformed, a path twice
Result<ListPage> parse_hub_tree(const HttpReply& reply,
                                std::string_view prefix);

/// The error of a reply that is not a success. `doing`: "reading hf://…". It
/// shows none of HttpReply::sent_values.
///
/// Errors: as http/status.h; a 401 that says that the repository is not there,
/// as the Hub does to strangers, is kPermissionDenied
Error error_from_hub(const HttpReply& reply, std::string_view doing,
                     bool has_token);

}  // namespace leat
