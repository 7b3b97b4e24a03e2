// The answers of Azure Blob Storage, which are hostile bytes.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "leat/base/error.h"
#include "leat/base/result.h"
#include "leat/store/http/http_client.h"
#include "leat/store/store.h"

namespace leat {

/// A longer refusal is not read.
inline constexpr std::size_t kMostAzureErrorBytes = 64 << 10;

/// Reads a page of List Blobs: bounded and checked. Folders of accounts with a
/// hierarchical namespace are left out.
///
/// Errors:
///   kCorrupt  no such XML or far too much of it, a size that is no number,
///             keys outside `prefix`
Result<ListPage> parse_azure_list(std::string_view body,
                                  std::string_view prefix);

/// The request, for the message.
struct AzureAttempt {
  std::string doing;  ///< "reading az://c/7.tar [0, 65536)"
  bool is_anonymous = false;
  /// A newer token or the server's time may make the same request succeed.
  bool may_succeed_now = false;
};

/// Azure's code for a reply that is not a success: "BlobNotFound"; empty if
/// none. It shows none of HttpReply::sent_values.
std::string azure_error_code(const HttpReply& reply);

/// The error of a reply that is not a success.
///
/// Errors, by Azure's code, or else by the status as in http/status.h:
///   kThrottled        ServerBusy
///   kInvalidArgument  BlobArchived; InvalidRange
///   kUnavailable      also a refusal that a newer token may turn
Error error_from_azure(const HttpReply& reply, const AzureAttempt& attempt);

}  // namespace leat
