// A fake of every service that gives temporary credentials: the metadata
// service of EC2, the endpoint of a container, STS, and the service behind a
// credential_process.
#pragma once
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "leat/base/mutex.h"
#include "leat/store/s3/aws/sigv4.h"
#include "leat/store/testing/http_server.h"

namespace leat::testing {

/// Every secret that a FakeIssuer knows, gives or wants begins with this, so
/// that a test can look for it in places where it must not be.
inline constexpr std::string_view kPlanted = "PLANTED";

/// The token that each service expects from its callers.
inline constexpr std::string_view kContainerToken = "PLANTEDCONTAINERTOKEN";
inline constexpr std::string_view kWebIdentityToken = "PLANTEDWEBIDENTITY";
inline constexpr std::string_view kSourceKeyId = "AKSOURCE";
inline constexpr std::string_view kSourceSecret = "PLANTEDSOURCESECRET";

/// Gives credentials that end after `lifetime`, and knows them again.
///
/// Answers PUT /latest/api/token and GET /latest/meta-data/… as IMDSv2, GET
/// /container, GET /process (as a credential_process prints), and POST / as
/// STS: AssumeRole signed by the source key, AssumeRoleWithWebIdentity.
///
/// Threads: any.
class FakeIssuer {
 public:
  struct Options {
    /// Rounded up to a whole second, as AWS tells it.
    std::chrono::milliseconds lifetime{2000};
    /// How long giving takes.
    std::chrono::milliseconds takes{0};
  };
  struct Issued {
    Credentials keys;
    WallTime expires_at;
  };

  explicit FakeIssuer(Options options) : options_(options) {}

  ServerReply answer(const ServerRequest& request);

  /// The credentials that were given under this access key id.
  std::optional<Issued> find(std::string_view access_key_id) const;

  std::size_t given() const;
  /// Askings that began before the answer to another was out.
  std::size_t overlapping() const;
  /// Requests that did not bring what was wanted from them.
  std::size_t refused() const;

 private:
  Issued issue();
  ServerReply give_json(std::string_view token_name);
  ServerReply answer_instance(const ServerRequest& request);
  ServerReply answer_sts(const ServerRequest& request);
  ServerReply give_xml(const std::string& action);
  ServerReply refuse(int status, std::string_view said);

  const Options options_;
  mutable Mutex mutex_;
  std::map<std::string, Issued, std::less<>> issued_ LEAT_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point busy_until_ LEAT_GUARDED_BY(mutex_){};
  std::size_t overlapping_ LEAT_GUARDED_BY(mutex_) = 0;
  std::size_t refused_ LEAT_GUARDED_BY(mutex_) = 0;
};

}  // namespace leat::testing
