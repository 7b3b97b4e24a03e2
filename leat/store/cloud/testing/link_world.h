// The fixture that the tests of credential places share.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "leat/store/cloud/provider.h"
#include "leat/store/cloud/testing/fake_http.h"

namespace leat::testing {

using Variables = std::map<std::string, std::string, std::less<>>;

/// A home folder, a clock that stands at noon of 2024-02-29, and an HTTP client
/// that answers from `script`.
class LinkWorld {
 public:
  LinkWorld() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "leat-link-XXXXXX").string();
    home = ::mkdtemp(pattern.data());
  }
  ~LinkWorld() {
    std::error_code ignored;
    std::filesystem::remove_all(home, ignored);
  }
  LinkWorld(const LinkWorld&) = delete;
  LinkWorld& operator=(const LinkWorld&) = delete;

  std::string write(const std::string& name, std::string_view text) {
    const std::filesystem::path path = home / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

  CredentialTools tools(Variables variables = {}) {
    variables.try_emplace("HOME", home.string());
    CredentialTools tools{.env = fake_env(std::move(variables))};
    tools.now = [] {
      return std::chrono::system_clock::time_point(
          std::chrono::sys_days(std::chrono::year(2024) / 2 / 29) +
          std::chrono::hours(12));
    };
    tools.clock = clock;
    tools.open_http = [this](const HttpClientOptions& options) {
      opened.push_back(options);
      return std::make_unique<FakeHttp>(script);
    };
    return tools;
  }

  /// The rest of the life of credentials, at noon.
  Nanoseconds left(const TimedCredentials& found) const {
    return *found.expires_at - clock->now();
  }

  std::filesystem::path home;
  HttpScript script;
  std::vector<HttpClientOptions> opened;
  std::shared_ptr<FakeClock> clock = std::make_shared<FakeClock>();
};

}  // namespace leat::testing
