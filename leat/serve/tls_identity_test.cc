#include "leat/serve/tls_identity.h"

#include <gtest/gtest.h>

#include "leat/serve/http_server.h"

namespace leat {
namespace {

class NoService final : public HttpService {
  std::unique_ptr<Exchange> begin(const RequestHead&) override {
    return nullptr;
  }
};

TEST(TlsIdentityTest, IsPemAndNewEachTime) {
  const auto one = make_self_signed_identity("127.0.0.1");
  const auto other = make_self_signed_identity("127.0.0.1");

  ASSERT_TRUE(one);
  ASSERT_TRUE(other);
  EXPECT_TRUE(one->certificate_pem.starts_with("-----BEGIN CERTIFICATE-----"));
  EXPECT_TRUE(one->key_pem.starts_with("-----BEGIN PRIVATE KEY-----"));
  EXPECT_NE(one->key_pem, other->key_pem);
}

TEST(TlsIdentityTest, AServerTakesItAndRefusesAnother) {
  NoService service;
  HttpServerOptions options;
  options.tls = *make_self_signed_identity("127.0.0.1");

  EXPECT_TRUE(open_http_server(options, service));
  options.tls->key_pem = make_self_signed_identity("127.0.0.1")->key_pem;
  const auto refused = open_http_server(options, service);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace leat
