#include "leat/engine/loader/kept_epochs.h"

namespace leat {
namespace {

void add(const EpochStats& epoch, LoaderRates& rates) {
  rates.samples += epoch.samples;
  rates.wait += epoch.wait;
  rates.stalls += epoch.stalls;
  ++rates.epochs;
}

}  // namespace

void KeptEpochs::begin(std::uint64_t epoch) {
  if (kept_.size() == kMost) {
    add(kept_.front(), dropped_);
    kept_.pop_front();
  }
  kept_.push_back({.epoch = epoch});
}

void KeptEpochs::add_to(LoaderRates& rates) const {
  rates.samples += dropped_.samples;
  rates.wait += dropped_.wait;
  rates.stalls += dropped_.stalls;
  rates.epochs = dropped_.epochs;
  for (const EpochStats& epoch : kept_) add(epoch, rates);
}

}  // namespace leat
