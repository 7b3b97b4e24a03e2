// leat bucket DIR    Serves a folder as S3 buckets, as slow as a cloud.

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <ostream>
#include <random>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/units.h"
#include "leat/bucket/bucket_server.h"
#include "leat/cli/commands.h"
#include "leat/cli/number_checks.h"
#include "leat/serve/open_file.h"
#include "leat/serve/tls_identity.h"

namespace leat {
namespace {

/// The options as they are written.
struct BucketWords {
  std::string folder;
  std::string host = "127.0.0.1";
  std::vector<std::string> names;
  std::uint16_t port = 0;
  std::size_t threads = 1;
  std::string latency = "0";
  std::string bandwidth;
  std::string total_bandwidth;
  std::vector<std::string> faults;
  std::string fault_script;
  std::string repeat;
  std::uint64_t seed = 0;
  std::uint64_t most_gets = 0;
  std::uint32_t retry_after = 0;
  bool checksums = false;
  std::string credentials;
  bool no_credentials = false;
  std::string session_token;
  std::string expired_token;
  bool tls = false;
  std::string tls_cert_out;
  bool exit_with_stdin = false;
  bool json = false;
};

Result<std::uint64_t> parse_rate(std::string_view text,
                                 std::string_view option) {
  if (text.empty()) return std::uint64_t{0};
  std::string_view amount = text;
  if (amount.ends_with("/s")) amount.remove_suffix(2);
  auto rate = parse_bytes(amount);
  if (!rate || *rate == 0) {
    return invalid("--{} {} is no rate such as 90MB/s", option, text);
  }
  return rate;
}

Result<std::string> read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return invalid("--fault-script {} cannot be read", path);
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// True if other machines cannot reach this address.
bool is_loopback(const std::string& host) {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return (ntohl(v4.s_addr) >> 24) == 127;
  }
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 &&
         IN6_IS_ADDR_LOOPBACK(&v6);
}

std::string drawn(std::size_t bytes) {
  std::random_device draw;
  std::string text;
  while (text.size() < 2 * bytes) text += fmt::format("{:08x}", draw());
  return text.substr(0, 2 * bytes);
}

Result<AccessOptions> access_of(const BucketWords& words) {
  AccessOptions access;
  access.expired_token = words.expired_token;
  access.names = words.names;
  if (words.no_credentials && !words.credentials.empty()) {
    return invalid("--no-credentials and --credentials exclude each other");
  }
  const std::size_t colon = words.credentials.find(':');
  if (!words.credentials.empty()) {
    if (colon == std::string::npos || colon == 0 ||
        colon + 1 == words.credentials.size()) {
      // Not repeated: the half that is right may be a secret.
      return invalid("--credentials reads KEY:SECRET");
    }
    access.credentials =
        Credentials{words.credentials.substr(0, colon),
                    words.credentials.substr(colon + 1), words.session_token};
  } else if (!words.session_token.empty()) {
    return invalid("--session-token needs --credentials KEY:SECRET");
  } else if (!words.no_credentials && !is_loopback(words.host)) {
    access.credentials = Credentials{"LEAT" + drawn(8), drawn(20), ""};
  }
  return access;
}

Result<Behaviour> behaviour_of(const BucketWords& words) {
  Behaviour behaviour;
  behaviour.seed = words.seed;
  behaviour.most_gets_per_second = words.most_gets;
  behaviour.retry_after_seconds = words.retry_after;
  behaviour.gives_checksums = words.checksums;
  LEAT_TRY(behaviour.latency, parse_latency(words.latency));
  for (const std::string& fault : words.faults) {
    LEAT_TRY(const FaultRate rate, parse_fault_rate(fault));
    behaviour.faults.push_back(rate);
  }
  if (!words.fault_script.empty()) {
    LEAT_TRY(const std::string text, read_text_file(words.fault_script));
    LEAT_TRY(behaviour.fault_script, parse_fault_script(text));
  }
  return behaviour;
}

Result<void> write_certificate(const TlsIdentity& identity,
                               const std::string& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << identity.certificate_pem;
  file.close();
  if (file) return {};
  return denied("--tls-cert-out {} cannot be written", path);
}

Result<HttpServerOptions> http_of(const BucketWords& words) {
  HttpServerOptions http;
  http.host = words.host;
  http.port = words.port;
  http.threads = words.threads;
  http.thread_name = "leat-bucket";
  LEAT_TRY(http.connection_bytes_per_second,
           parse_rate(words.bandwidth, "bandwidth"));
  LEAT_TRY(http.total_bytes_per_second,
           parse_rate(words.total_bandwidth, "total-bandwidth"));
  if (!words.tls) {
    if (words.tls_cert_out.empty()) return http;
    return invalid("--tls-cert-out needs --tls");
  }
  LEAT_TRY(http.tls, make_self_signed_identity(words.host));
  if (!words.tls_cert_out.empty()) {
    LEAT_TRY_VOID(write_certificate(*http.tls, words.tls_cert_out));
  }
  return http;
}

/// Waits until `stop` fires or, if asked to look, standard input ends.
void wait_for_end(bool exit_with_stdin, const std::stop_token& stop) {
  const OpenFile wake(::eventfd(0, EFD_CLOEXEC));
  const std::stop_callback on_stop(stop, [&wake] {
    const std::uint64_t one = 1;
    (void)!::write(wake.descriptor(), &one, sizeof one);
  });
  std::array<pollfd, 2> sources{
      pollfd{.fd = wake.descriptor(), .events = POLLIN, .revents = 0},
      pollfd{.fd = exit_with_stdin ? STDIN_FILENO : -1,
             .events = POLLIN,
             .revents = 0}};
  while (!stop.stop_requested()) {
    if (::poll(sources.data(), sources.size(), -1) < 0) continue;
    if (sources[1].revents == 0) continue;
    std::array<char, 256> ignored;
    if (::read(STDIN_FILENO, ignored.data(), ignored.size()) <= 0) return;
  }
}

Result<void> run_bucket(const BucketWords& words, CommandContext& context) {
  BucketOptions options;
  options.folder = words.folder;
  options.repeat = words.repeat;
  LEAT_TRY(options.access, access_of(words));
  LEAT_TRY(options.behaviour, behaviour_of(words));
  LEAT_TRY(options.http, http_of(words));
  const bool are_made = options.access.credentials && words.credentials.empty();
  const auto keys = options.access.credentials;
  LEAT_TRY(const auto server, open_bucket_server(std::move(options)));
  context.out << "listening on " << server->url() << '\n';
  if (are_made) {
    context.out << "requests must be signed: AWS_ACCESS_KEY_ID="
                << keys->access_key_id
                << " AWS_SECRET_ACCESS_KEY=" << keys->secret_access_key << '\n';
  }
  context.out << std::flush;
  wait_for_end(words.exit_with_stdin, context.stop);
  if (words.json) context.out << server->counters_json() << '\n';
  return {};
}

std::function<Result<void>(CommandContext&)> add_bucket(CLI::App& app) {
  auto words = std::make_shared<BucketWords>();
  app.add_option("DIR", words->folder, "folder whose folders are the buckets")
      ->required();
  app.add_option("--host", words->host, "address to listen on")
      ->capture_default_str();
  app.add_option("--name", words->names,
                 "a host name by which requests without a signature may ask, "
                 "besides localhost and addresses; may be repeated")
      ->take_all();
  app.add_option("--port", words->port, "port to listen on; 0 for a free one")
      ->transform(count_between(0, std::numeric_limits<std::uint16_t>::max()))
      ->capture_default_str();
  app.add_option("--threads", words->threads, "threads that serve")
      ->transform(count_between(1, 256))
      ->capture_default_str();
  app.add_option("--latency", words->latency,
                 "delay of the first byte: 55ms, or lognormal:110ms,0.5 "
                 "(median, sigma)");
  app.add_option("--bandwidth", words->bandwidth,
                 "rate of a connection, such as 90MB/s");
  app.add_option("--total-bandwidth", words->total_bandwidth,
                 "rate of all connections together");
  app.add_option("--fault", words->faults,
                 "a fault and its rate: 503:1%, reset:0.1%, truncate:1%, "
                 "stall:1%, trickle:1%, flip:1%, slow:2s:1%; may be repeated")
      ->take_all();
  app.add_option("--fault-script", words->fault_script,
                 "file of lines such as: after 10 GET photos/ 503 x3");
  app.add_option("--most-gets", words->most_gets,
                 "GETs a second; those beyond get 503 SlowDown; 0: no limit")
      ->transform(count_between(0, std::numeric_limits<std::uint32_t>::max()));
  app.add_option("--retry-after", words->retry_after,
                 "seconds that its 429s and 503s ask clients to wait; 0: they "
                 "do not ask")
      ->transform(count_between(0, std::numeric_limits<std::uint32_t>::max()));
  app.add_flag("--checksums", words->checksums,
               "give whole objects' CRC64NVME to clients that ask for it");
  app.add_option("--repeat", words->repeat,
                 "BUCKET/FILE:COUNT: the file as that many objects, "
                 "FILE-00000000 and on, instead of all else in its folder");
  app.add_option("--seed", words->seed, "decides faults and latencies")
      ->transform(count_between(0, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  app.add_option("--credentials", words->credentials,
                 "KEY:SECRET that requests must be signed with; without, "
                 "nobody has to sign on a loopback address, and on another "
                 "one a pair is made and printed");
  app.add_flag("--no-credentials", words->no_credentials,
               "nobody has to sign, though others reach the address");
  app.add_option("--session-token", words->session_token,
                 "token that must come with the credentials");
  app.add_option("--expired-token", words->expired_token,
                 "session token that is answered with ExpiredToken");
  app.add_flag("--tls", words->tls, "speak HTTPS, with a certificate made now");
  app.add_option("--tls-cert-out", words->tls_cert_out,
                 "file for that certificate, so that clients can verify it");
  app.add_flag("--exit-with-stdin", words->exit_with_stdin,
               "end when standard input does, as when a parent dies");
  app.add_flag("--json", words->json, "print the counters at the end");
  app.footer(
      "Example:\n"
      "  leat bucket ./data --port 9000 --latency 55ms --fault 503:1%\n"
      "  AWS_ENDPOINT_URL=http://127.0.0.1:9000 aws s3 ls s3://photos/");
  return
      [words](CommandContext& context) { return run_bucket(*words, context); };
}

}  // namespace

const Command kBucketCommand{
    .name = "bucket",
    .summary = "serve a folder as S3 buckets, with latency, faults, counters",
    .add = add_bucket};

}  // namespace leat
