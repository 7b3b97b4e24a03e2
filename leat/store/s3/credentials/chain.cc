#include "leat/store/s3/credentials/chain.h"

#include <fmt/format.h>

#include <utility>

#include "leat/base/errors.h"
#include "leat/store/s3/credentials/container.h"
#include "leat/store/s3/credentials/imds.h"
#include "leat/store/s3/credentials/profile_link.h"
#include "leat/store/s3/credentials/static_keys.h"
#include "leat/store/s3/credentials/web_identity.h"

namespace leat {
namespace {

using Outcome = LinkReport::Outcome;

/// "the environment: AWS_ACCESS_KEY_ID is not set; …" of those asked in vain.
std::string tried(const std::vector<LinkReport>& reports) {
  std::string text;
  for (const LinkReport& report : reports) {
    if (report.outcome != Outcome::kNothing) continue;
    text.append(text.empty() ? "" : "; ");
    text.append(report.name).append(": ").append(report.why);
  }
  return text;
}

}  // namespace

CredentialChain::CredentialChain(
    std::vector<std::unique_ptr<CredentialProvider>> links,
    std::optional<std::size_t> environment)
    : links_(std::move(links)), environment_(environment) {
  for (const auto& link : links_) reports_.push_back({.name = link->name()});
}

bool CredentialChain::is_local() const {
  for (const auto& link : links_) {
    if (!link->is_local()) return false;
  }
  return true;
}

Result<CredentialAnswer> CredentialChain::ask(std::size_t link,
                                              const std::stop_token& stop) {
  Result<CredentialAnswer> answer = links_[link]->fetch(stop);
  LinkReport report{.name = links_[link]->name()};
  if (!answer) {
    report.outcome = Outcome::kFailed;
    report.why = answer.error().message();
  } else if (!answer->found) {
    report.outcome = Outcome::kNothing;
    report.why = answer->why_not;
  } else {
    report.outcome = Outcome::kFound;
    answered_ = link;
  }
  const MutexLock lock(mutex_);
  reports_[link] = report;
  if (answer) return answer;
  const std::string before = tried(reports_);
  return Error(answer.error().code(),
               fmt::format("AWS credentials of {}: {}{}{}{}", report.name,
                           report.why, before.empty() ? "" : " (before that: ",
                           before, before.empty() ? "" : ")"));
}

Result<CredentialAnswer> CredentialChain::fetch(std::stop_token stop) {
  if (answered_) {
    LEAT_TRY(CredentialAnswer answer, ask(*answered_, stop));
    if (answer.found) return answer;
    return denied("{} gave AWS credentials before and has none now: {}",
                  links_[*answered_]->name(), answer.why_not);
  }
  for (std::size_t link = 0; link < links_.size(); ++link) {
    LEAT_TRY(CredentialAnswer answer, ask(link, stop));
    if (answer.found) return answer;
  }
  return nobody_has_any();
}

Result<std::optional<TimedCredentials>> CredentialChain::fetch_locally() {
  for (std::size_t link = 0; link < links_.size(); ++link) {
    if (!links_[link]->is_local()) return std::optional<TimedCredentials>();
    LEAT_TRY(CredentialAnswer answer, ask(link, {}));
    if (answer.found) return std::move(answer.found);
  }
  return nobody_has_any();
}

std::vector<LinkReport> CredentialChain::reports() const {
  const MutexLock lock(mutex_);
  return reports_;
}

Error CredentialChain::nobody_has_any() const {
  return denied(
      "no AWS credentials; tried {}. Set AWS_ACCESS_KEY_ID and "
      "AWS_SECRET_ACCESS_KEY or run `aws configure`; for a public bucket use "
      "no_sign_request (--no-sign-request); `leat doctor` says more",
      tried(reports()));
}

std::unique_ptr<CredentialChain> default_credential_chain(
    const ChainOptions& options, const AwsProfile& profile,
    const CredentialTools& tools) {
  std::vector<std::unique_ptr<CredentialProvider>> links;
  std::optional<std::size_t> environment;
  if (options.profile.empty()) {
    environment = links.size();
    links.push_back(environment_keys(tools.env));
    links.push_back(environment_web_identity(
        sts_place(options.region, profile, tools.env), tools));
  }
  links.push_back(profile_link({.profile = options.profile,
                                .region = options.region,
                                .helper = options.helper},
                               profile, tools));
  links.push_back(container_role(tools));
  links.push_back(instance_role(imds_options(profile, tools.env), tools));
  return std::make_unique<CredentialChain>(std::move(links), environment);
}

}  // namespace leat
