#include "leat/store/s3/diagnosis.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <memory>
#include <optional>
#include <utility>

#include "leat/base/units.h"
#include "leat/store/cloud/ask.h"
#include "leat/store/cloud/diagnosis.h"
#include "leat/store/http/http_url.h"
#include "leat/store/http/status.h"
#include "leat/store/s3/aws/endpoint.h"
#include "leat/store/s3/credentials/chain.h"
#include "leat/store/s3/credentials/imds.h"

namespace leat {
namespace {

using Level = Diagnosis::Level;

std::string line_of(const LinkReport& report) {
  switch (report.outcome) {
    case LinkReport::Outcome::kFound:
      return report.name + ": used";
    case LinkReport::Outcome::kNothing:
      return report.name + ": " + report.why;
    case LinkReport::Outcome::kFailed:
      return report.name + ": FAILED, as said above";
    case LinkReport::Outcome::kNotAsked:
      break;
  }
  return report.name + ": not asked";
}

/// "profile 'dev', good for another 59 m"
std::string who_and_how_long(const CredentialChain& chain,
                             const TimedCredentials& found) {
  std::string who;
  for (const LinkReport& report : chain.reports()) {
    if (report.outcome == LinkReport::Outcome::kFound) who = report.name;
  }
  who += ", key " + found.keys.access_key_id;
  if (!found.expires_at) {
    return who + (found.keys.session_token.empty()
                      ? ", long-lived"
                      : ", temporary; they do not say until when");
  }
  return who + ", " + remaining_life(*found.expires_at - SteadyClock().now());
}

bool is_private(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const std::uint32_t ip =
        ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr);
    return ip >> 24 == 10 || ip >> 24 == 127 || ip >> 20 == 0xac1 ||
           ip >> 16 == 0xc0a8 || ip >> 16 == 0xa9fe;
  }
  const in6_addr& ip = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return (ip.s6_addr[0] & 0xfe) == 0xfc || IN6_IS_ADDR_LOOPBACK(&ip);
}

/// False if the name is not known.
bool has_private_address(std::string_view host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(std::string(host).c_str(), nullptr, &hints, &found) != 0) {
    return false;
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> held(
      found, &::freeaddrinfo);
  return is_private(*found->ai_addr);
}

/// The first line of the service's answer; empty if that is not a success.
std::string word_at(ImdsSession& session, std::string_view path,
                    const std::stop_token& stop) {
  const Result<HttpReply> reply = session.get(path, stop);
  if (!reply || !is_success(reply->status) || reply->body.size() > 4096) {
    return {};
  }
  const std::string word = reply->body.substr(0, reply->body.find('\n'));
  return consists_of(word, "-_.:/") ? word : std::string();
}

void ask_instance(const CredentialTools& tools, const AwsProfile& profile,
                  const std::stop_token& stop, NetworkFacts& facts) {
  auto options = imds_options(profile, tools.env);
  if (!options) return;
  ImdsSession session(*std::move(options), tools);
  const auto state = session.open(stop);
  if (!state || *state != ImdsSession::State::kOpen) return;
  const std::string region =
      word_at(session, "meta-data/placement/region", stop);
  if (!is_region(region)) return;
  facts.instance_region = region;
  facts.has_public_address =
      !word_at(session, "meta-data/public-ipv4", stop).empty();
  std::string mac = word_at(session, "meta-data/mac", stop);
  if (mac.empty()) return;
  facts.vpc_id = word_at(
      session, "meta-data/network/interfaces/macs/" + mac + "/vpc-id", stop);
}

}  // namespace

Diagnosis diagnose_credentials(const S3Options& options, const Env& env,
                               const std::stop_token& stop) {
  Diagnosis diagnosis{.check = "credentials"};
  if (options.no_sign_request) {
    return no_credentials("not wanted (--no-sign-request)");
  }
  const auto fail = [&](const Error& error) {
    diagnosis.level = Level::kBad;
    diagnosis.found = error.message();
    diagnosis.remedy =
        retryable(error.code())
            ? "check the network, and try again"
            : "set up one of these places; leat/store/s3/README.md lists them";
  };
  auto chain = open_credential_chain(options, env);
  if (!chain) {
    fail(chain.error());
    return diagnosis;
  }
  const Result<CredentialAnswer> answer = (*chain)->fetch(stop);
  for (const LinkReport& report : (*chain)->reports()) {
    diagnosis.details.push_back(line_of(report));
  }
  if (answer) {
    diagnosis.found = who_and_how_long(**chain, *answer->found);
  } else {
    fail(answer.error());
  }
  return diagnosis;
}

Result<NetworkFacts> network_facts(std::string_view bucket, S3Options options,
                                   const Env& env,
                                   const std::stop_token& stop) {
  options.no_sign_request = true;  // Every answer names the region, 403 too.
  LEAT_TRY(const S3Settings settings,
           resolve_s3_settings(bucket, options, env));
  LEAT_TRY(const AwsProfile profile, load_aws_profile(options.profile, env));
  CredentialTools tools{.env = env};
  tools.ca_bundle = settings.ca_bundle;
  NetworkFacts facts;
  facts.bucket = bucket;
  HttpRequest request;
  request.method = "HEAD";
  request.url = settings.base_url + (settings.base_path.empty() ? "/" : "");
  const auto reply = ask(tools, std::move(request), std::chrono::seconds(5),
                         Proxy::kFromEnvironment, stop);
  if (reply && is_region(reply->header("x-amz-bucket-region"))) {
    facts.bucket_region = reply->header("x-amz-bucket-region");
  }
  const auto url = split_http_url(settings.base_url);
  facts.is_endpoint_private = url && has_private_address(url->host);
  ask_instance(tools, profile, stop, facts);
  return facts;
}

std::vector<Diagnosis> judge_network(const NetworkFacts& facts) {
  std::vector<Diagnosis> found;
  if (facts.instance_region.empty()) return found;
  if (!facts.bucket_region.empty()) {
    Diagnosis region{.check = "region"};
    region.found =
        fmt::format("this instance is in {}, bucket '{}' in {}",
                    facts.instance_region, facts.bucket, facts.bucket_region);
    if (facts.bucket_region != facts.instance_region) {
      region.level = Level::kWarning;
      region.remedy = fmt::format(
          "every byte is billed as transfer between regions and takes longer; "
          "run in {}, or copy the data to {}",
          facts.bucket_region, facts.instance_region);
    }
    found.push_back(std::move(region));
  }
  if (!facts.has_public_address && !facts.is_endpoint_private) {
    Diagnosis nat{.check = "nat", .level = Level::kWarning};
    nat.found =
        "this instance has no public address: without a gateway endpoint for "
        "S3 in its VPC, every byte passes a NAT gateway, billed by the GB";
    nat.remedy = fmt::format(
        "see whether there is one: aws ec2 describe-vpc-endpoints --region {} "
        "--filters Name=vpc-id,Values={} "
        "Name=service-name,Values=com.amazonaws.{}.s3 (a gateway endpoint is "
        "free)",
        facts.instance_region, facts.vpc_id.empty() ? "VPC" : facts.vpc_id,
        facts.instance_region);
    found.push_back(std::move(nat));
  }
  return found;
}

}  // namespace leat
