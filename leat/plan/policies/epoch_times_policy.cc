#include "leat/plan/policies/epoch_times_policy.h"

#include <utility>

namespace leat {
namespace {

class EpochTimesPolicy final : public CachePolicy {
 public:
  EpochTimesPolicy(std::unique_ptr<CachePolicy> policy,
                   std::uint64_t epoch_reads)
      : policy_(std::move(policy)), epoch_reads_(epoch_reads) {}

  void used(SampleId sample, AccessTime now, AccessTime next_use,
            std::vector<SampleId>& drop) override {
    policy_->used(sample, in_reads(now), in_reads(next_use), drop);
  }
  bool admit(SampleId sample, std::uint64_t bytes, AccessTime now,
             AccessTime next_use, std::vector<SampleId>& drop) override {
    return policy_->admit(sample, bytes, in_reads(now), in_reads(next_use),
                          drop);
  }
  void lost(SampleId sample) override { policy_->lost(sample); }
  void set_capacity(std::uint64_t capacity,
                    std::vector<SampleId>& drop) override {
    policy_->set_capacity(capacity, drop);
  }
  bool holds(SampleId sample) const override { return policy_->holds(sample); }
  std::uint64_t held_bytes() const override { return policy_->held_bytes(); }
  std::uint64_t held_items() const override { return policy_->held_items(); }

 private:
  AccessTime in_reads(AccessTime time) const {
    const std::uint64_t epoch = time / kEpochTime;
    // No job gets that far: such a time only says what goes last.
    if (epoch == kNever / kEpochTime) return kNever;
    return epoch * epoch_reads_ + time % kEpochTime;
  }

  const std::unique_ptr<CachePolicy> policy_;
  const std::uint64_t epoch_reads_;
};

}  // namespace

std::unique_ptr<CachePolicy> make_epoch_times_policy(
    std::unique_ptr<CachePolicy> policy, std::uint64_t epoch_reads) {
  return std::make_unique<EpochTimesPolicy>(std::move(policy), epoch_reads);
}

}  // namespace leat
