// The facts about access to a bucket that a user should know.
#pragma once
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/store/diagnosis.h"
#include "leat/store/s3/settings.h"

namespace leat {

/// The source of the credentials, how long they last, and why earlier sources
/// give none. Blocks: asks them.
Diagnosis diagnose_credentials(const S3Options& options, const Env& env,
                               const std::stop_token& stop);

/// Known facts about the way to a bucket; texts are empty if unknown.
struct NetworkFacts {
  std::string bucket;
  std::string bucket_region;
  std::string instance_region;  ///< Empty: not an EC2 instance.
  std::string vpc_id;
  bool has_public_address = false;
  /// The bucket's host has an address within the VPC, or on this machine.
  bool is_endpoint_private = false;
};

/// Asks the bucket for its region and, on an EC2 instance, the metadata service
/// for ours. Blocks for a few seconds at most.
///
/// Errors: as resolve_s3_settings
Result<NetworkFacts> network_facts(std::string_view bucket, S3Options options,
                                   const Env& env, const std::stop_token& stop);

/// Warns of another region and of a NAT gateway, which are both billed by the
/// byte. Empty if nothing is known.
std::vector<Diagnosis> judge_network(const NetworkFacts& facts);

}  // namespace leat
