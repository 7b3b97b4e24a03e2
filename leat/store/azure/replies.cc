#include "leat/store/azure/replies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <pugixml.hpp>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/text.h"
#include "leat/store/cloud/checks.h"
#include "leat/store/cloud/list_xml.h"
#include "leat/store/cloud/uri.h"
#include "leat/store/http/shown_text.h"
#include "leat/store/http/status.h"

namespace leat {
namespace {

// A full page has 5,000 blobs of some thirty tags each; this bounds the memory
// that the tree takes.
constexpr std::ptrdiff_t kMostTags = 500'000;

Error bad_list(std::string_view why) {
  return corrupt(
      "the server's list of blobs is not Azure's: {}; check the endpoint URL",
      why);
}

/// Names that XML cannot hold come percent-encoded.
std::string name_of(const pugi::xml_node& entry) {
  const pugi::xml_node name = entry.child("Name");
  std::string text = name.child_value();
  const bool is_encoded =
      std::string_view(name.attribute("Encoded").value()) == "true";
  return is_encoded ? uri_decode(text) : text;
}

/// With the quotes that the header ETag has.
std::string quoted(std::string_view etag) {
  if (etag.empty() || etag.ends_with('"')) return std::string(etag);
  return fmt::format("\"{}\"", etag);
}

struct Meaning {
  std::string_view code;
  ErrorCode error;
  std::string_view remedy;
};

constexpr std::string_view kSlower =
    "the service asks for fewer requests; lower max_in_flight";
constexpr std::string_view kGrant =
    "grant Storage Blob Data Reader on the container (Storage Blob Data "
    "Contributor to write), or use other credentials";
constexpr std::string_view kChanged =
    "the object changed since it was indexed; index again";

constexpr std::array kMeanings = {
    Meaning{"BlobNotFound", ErrorCode::kNotFound,
            "there is no blob of this name; check the spelling and, if the "
            "catalogue is old, index again"},
    Meaning{"ContainerNotFound", ErrorCode::kNotFound,
            "there is no container of this name; check it and the account"},
    Meaning{"ConditionNotMet", ErrorCode::kCorrupt, kChanged},
    Meaning{"InvalidRange", ErrorCode::kInvalidArgument,
            "the range runs past the end; if the object shrank, index again"},
    Meaning{"AuthenticationFailed", ErrorCode::kPermissionDenied,
            "the account's key, the SAS or the token is not right, or no "
            "longer; renew it"},
    Meaning{"InvalidAuthenticationInfo", ErrorCode::kPermissionDenied,
            "the token is not right, or no longer; renew it"},
    Meaning{"PublicAccessNotPermitted", ErrorCode::kPermissionDenied, kGrant},
    Meaning{"BlobArchived", ErrorCode::kInvalidArgument,
            "the blob is archived; rehydrate it first"},
    Meaning{"ServerBusy", ErrorCode::kThrottled, kSlower},
    Meaning{"OperationTimedOut", ErrorCode::kUnavailable,
            "the service failed and may recover"},
};

std::string_view usual_remedy(int status) {
  switch (error_code_of(status)) {
    case ErrorCode::kPermissionDenied:
      return kGrant;
    case ErrorCode::kNotFound:
      return kMeanings[0].remedy;
    case ErrorCode::kCorrupt:
      return kChanged;
    case ErrorCode::kThrottled:
      return kSlower;
    case ErrorCode::kUnavailable:
      return "the service failed and may recover";
    default:
      return "the server does not accept the request";
  }
}

}  // namespace

Result<ListPage> parse_azure_list(std::string_view body,
                                  std::string_view prefix) {
  pugi::xml_document document;
  if (const auto wrong = load_list_xml(body, kMostTags, document);
      !wrong.empty()) {
    return bad_list(wrong);
  }
  const pugi::xml_node root = document.child("EnumerationResults");
  if (!root) return bad_list("it has no EnumerationResults");
  ListPage page;
  for (const pugi::xml_node entry : root.child("Blobs").children()) {
    if (std::string_view(entry.name()) == "BlobPrefix") {
      page.common_prefixes.push_back(name_of(entry));
      continue;
    }
    const pugi::xml_node properties = entry.child("Properties");
    if (std::string_view(properties.child_value("ResourceType")) ==
        "directory") {
      continue;
    }
    const auto size =
        number_from<std::uint64_t>(properties.child_value("Content-Length"));
    if (!size) return bad_list("a size is not a number");
    page.objects.push_back({.key = name_of(entry),
                            .size_bytes = *size,
                            .etag = quoted(properties.child_value("Etag"))});
  }
  // With a hierarchical namespace, names have an order of their own.
  std::ranges::sort(page.objects, {}, &ObjectInfo::key);
  std::ranges::sort(page.common_prefixes);
  LEAT_TRY_VOID(check_page(page, prefix));
  page.resume = root.child_value("NextMarker");
  return page;
}

std::string azure_error_code(const HttpReply& reply) {
  if (const auto code = reply.header("x-ms-error-code"); !code.empty()) {
    return shown_text(code, reply.sent_values);
  }
  if (reply.body.size() > kMostAzureErrorBytes) return {};
  pugi::xml_document document;
  if (!document.load_buffer(reply.body.data(), reply.body.size(),
                            pugi::parse_default, pugi::encoding_utf8)) {
    return {};
  }
  return shown_text(document.child("Error").child_value("Code"),
                    reply.sent_values);
}

Error error_from_azure(const HttpReply& reply, const AzureAttempt& attempt) {
  // The message repeats the request, signature and all: only the code is shown.
  const std::string said = azure_error_code(reply);
  const auto meaning = std::ranges::find(kMeanings, said, &Meaning::code);
  const bool is_known = meaning != kMeanings.end();
  ErrorCode code = is_known ? meaning->error : error_code_of(reply.status);
  std::string_view remedy =
      is_known ? meaning->remedy : usual_remedy(reply.status);
  if (attempt.is_anonymous &&
      (code == ErrorCode::kPermissionDenied || said == "ResourceNotFound")) {
    remedy =
        "the container is not public, and nobody was named; give credentials "
        "and leave no_sign_request (--no-sign-request) out";
  }
  if (attempt.may_succeed_now) code = ErrorCode::kUnavailable;
  std::string message = fmt::format("{}: HTTP {}", attempt.doing, reply.status);
  if (!said.empty()) message += " " + said;
  return Error(code, fmt::format("{} ({})", message, remedy));
}

}  // namespace leat
