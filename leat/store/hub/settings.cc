#include "leat/store/hub/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "leat/base/errors.h"
#include "leat/store/cloud/ask.h"
#include "leat/store/cloud/small_file.h"
#include "leat/store/cloud/token.h"
#include "leat/store/cloud/uri.h"

namespace leat {
namespace {

constexpr std::string_view kHub = "https://huggingface.co";
constexpr std::size_t kMostTokenBytes = 4 << 10;

Error bad_place() {
  return invalid(
      "write hf://datasets/OWNER/NAME/PATH for files of a dataset on the "
      "Hugging Face Hub, or OWNER/NAME@REVISION");
}

/// Cuts the part before the next '/' off.
std::string_view take_part(std::string_view& text) {
  const std::string_view part = text.substr(0, text.find('/'));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 96 && text != "." && text != ".." &&
         consists_of(text, "-._");
}

/// The folder of the Hub's own tools.
std::string token_file(const Env& env) {
  if (auto path = value_of(env, "HF_TOKEN_PATH")) return *std::move(path);
  if (const auto home = value_of(env, "HF_HOME")) return *home + "/token";
  if (const auto cache = value_of(env, "XDG_CACHE_HOME")) {
    return *cache + "/huggingface/token";
  }
  const auto home = value_of(env, "HOME");
  return home ? *home + "/.cache/huggingface/token" : "";
}

Result<void> find_token(const Env& env, HubSettings& settings) {
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (auto token = value_of(env, name)) {
      settings.token = *std::move(token);
      settings.token_source = name;
      return {};
    }
  }
  settings.token_source = token_file(env);
  if (settings.token_source.empty()) return {};
  LEAT_TRY(auto text, read_small_file(settings.token_source, kMostTokenBytes));
  std::string& token = settings.token = text.value_or("");
  while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
  return {};
}

}  // namespace

Result<HubPlace> parse_hub_path(std::string_view text) {
  HubPlace place;
  const std::string_view owner = take_part(text);
  std::string_view name = take_part(text);
  std::string revision = "main";
  if (const std::size_t at = name.find('@'); at != std::string_view::npos) {
    revision = uri_decode(name.substr(at + 1));
    name = name.substr(0, at);
    if (revision == "refs") {
      for (int i = 0; i < 2; ++i) {
        revision.append("/").append(take_part(text));
      }
    }
    if (revision.empty() || !consists_of(revision, "-._/") ||
        revision.find("..") != std::string::npos) {
      return bad_place();
    }
  }
  if (!is_name(owner) || !is_name(name)) return bad_place();
  place.repository = fmt::format("{}/{}", owner, name);
  place.revision = std::move(revision);
  place.path = text;
  return place;
}

Result<HubSettings> resolve_hub_settings(const HubOptions& options,
                                         const Env& env) {
  ConfiguredEndpoint place{std::string(kHub), "the Hub's"};
  if (auto url = value_of(env, "HF_ENDPOINT")) {
    place = {*std::move(url), "HF_ENDPOINT"};
  }
  if (!options.endpoint_url.empty()) {
    place = {options.endpoint_url, "endpoint_url (--endpoint-url)"};
  }
  HubSettings settings;
  LEAT_TRY(settings.endpoint, parse_endpoint(place));
  if (options.no_sign_request) return settings;
  LEAT_TRY_VOID(find_token(env, settings));
  if (settings.token.empty()) return settings;
  LEAT_TRY_VOID(check_token_url(settings.endpoint.url(), place.source));
  if (!is_header_word(settings.token)) {
    return invalid(
        "the Hub's token holds a blank, a line break or a byte that is not "
        "ASCII; set HF_TOKEN again, or run `hf auth login`");
  }
  return settings;
}

}  // namespace leat
