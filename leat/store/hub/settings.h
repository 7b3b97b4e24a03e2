// The way to a dataset of the Hugging Face Hub and the token to show.
#pragma once
#include <string>
#include <string_view>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/store/cloud/endpoint.h"

namespace leat {

/// A repository of files, at a revision.
struct HubPlace {
  std::string repository;  ///< OWNER/NAME
  std::string revision;    ///< A branch, tag or commit.
  std::string path;        ///< Below it; may be empty.
};

/// Reads "OWNER/NAME[@REVISION][/PATH]", which follows hf://datasets/. The
/// revision is percent-encoded, or refs/convert/X or refs/pr/N.
///
/// Errors:
///   kInvalidArgument  anything else
Result<HubPlace> parse_hub_path(std::string_view text);

struct HubOptions {
  std::string endpoint_url;  ///< Empty: HF_ENDPOINT, https://huggingface.co.
  bool no_sign_request = false;  ///< Shows no token.
};

struct HubSettings {
  Endpoint endpoint;
  std::string token;         ///< Empty: asks as nobody.
  std::string token_source;  ///< A variable or a file, for messages.
};

/// Reads environment and files. Asks nobody.
///
/// Errors:
///   kInvalidArgument  an endpoint that is invalid, or would get the token in
///                     the clear; a token that no header can hold
Result<HubSettings> resolve_hub_settings(const HubOptions& options,
                                         const Env& env);

}  // namespace leat
