#include "leat/engine/loader/kept_epochs.h"

namespace leat {
namespace {

void add(const EpochStats& epoch, LoaderTotals& totals) {
  totals.samples += epoch.samples;
  totals.wait += epoch.wait;
  totals.stalls += epoch.stalls;
  ++totals.epochs;
}

}  // namespace

void KeptEpochs::begin(std::uint64_t epoch) {
  if (kept_.size() == kMost) {
    add(kept_.front(), dropped_);
    kept_.pop_front();
  }
  kept_.push_back({.epoch = epoch});
}

void KeptEpochs::add_to(LoaderTotals& totals) const {
  totals.samples += dropped_.samples;
  totals.wait += dropped_.wait;
  totals.stalls += dropped_.stalls;
  totals.epochs = dropped_.epochs;
  for (const EpochStats& epoch : kept_) add(epoch, totals);
}

}  // namespace leat
