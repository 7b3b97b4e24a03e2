// Runs the tests; or, with --print URL, is a credential_process, and with
// --epoch ENDPOINT METADATA FOLDER one more rank on this node.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>

#include "leat/store/http/http_client.h"
#include "tests/credentials/credential_world.h"

namespace leat {
namespace {

int print(const char* url) {
  HttpRequest request;
  request.url = url;
  const auto reply = open_http_client({}, nullptr)->send_and_wait(request, {});
  if (!reply) return 1;
  std::fputs(reply->body.c_str(), stdout);
  return 0;
}

int run_rank(const char* endpoint, const char* metadata, const char* folder) {
  const Env env = fake_env({{"AWS_ENDPOINT_URL_S3", endpoint},
                            {"AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata},
                            {"LEAT_CACHE_DIR", folder}});
  const auto seen = run_epoch("s3://data/train", {}, env);
  if (!seen) {
    std::fputs(seen.error().message().c_str(), stderr);
    return 1;
  }
  std::fputs(seen->content_hash.hex().c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace leat

namespace leat::testing {
// The library of fakes has it, and another program runs it.
class StoreConformanceTest;
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreConformanceTest);
}  // namespace leat::testing

int main(int count, char** arguments) {
  const std::string_view first = count > 1 ? arguments[1] : "";
  if (count == 3 && first == "--print") return leat::print(arguments[2]);
  if (count == 5 && first == "--epoch") {
    return leat::run_rank(arguments[2], arguments[3], arguments[4]);
  }
  ::testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
