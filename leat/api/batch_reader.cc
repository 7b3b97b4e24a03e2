#include "leat/api/batch_reader.h"

#include <utility>

#include "leat/api/loader_options_of.h"
#include "leat/base/env.h"
#include "leat/base/errors.h"
#include "leat/engine/loader/loader.h"
#include "leat/engine/unindexed.h"

namespace leat {

struct BatchReader::Running {
  std::unique_ptr<Loader> loader;
  std::optional<Loader::Iteration> iteration;
};

BatchReader::BatchReader(std::unique_ptr<Running> running)
    : running_(std::move(running)) {}
BatchReader::~BatchReader() = default;
BatchReader::BatchReader(BatchReader&& other) noexcept = default;
BatchReader& BatchReader::operator=(BatchReader&& other) noexcept = default;

Result<BatchReader> BatchReader::open(std::string_view url,
                                      const ReaderOptions& options,
                                      const std::stop_token& stop) {
  const Env env = process_env();
  LEAT_TRY(LoaderOptions loader_options, loader_options_of(options));
  LEAT_TRY(LoaderSource source,
           open_for_loader(url, store_options_of(options.storage), {},
                           loader_options, env, stop));
  auto running = std::make_unique<Running>();
  LEAT_TRY(running->loader,
           Loader::open(std::move(source), std::move(loader_options), env));
  return BatchReader(std::move(running));
}

Result<void> BatchReader::begin() {
  LEAT_TRY(running_->iteration, running_->loader->begin());
  return {};
}

Result<std::optional<Batch>> BatchReader::next() {
  if (!running_->iteration) {
    return invalid("next() before begin(); call begin() once an epoch");
  }
  LEAT_TRY(Loader::Next next, running_->loader->next(*running_->iteration));
  std::optional<Batch> batch;
  if (!next.is_end()) batch = std::move(next.batch());
  return batch;
}

Result<void> BatchReader::set_epoch(std::uint64_t epoch) {
  return running_->loader->set_epoch(epoch);
}

std::string BatchReader::state() const { return running_->loader->state(); }

Result<void> BatchReader::load_state(std::string_view json) {
  return running_->loader->load_state(json);
}

std::optional<std::uint64_t> BatchReader::length() const {
  return running_->loader->length();
}

std::vector<std::string> BatchReader::field_names() const {
  return running_->loader->field_names();
}

Rank BatchReader::rank() const { return running_->loader->rank(); }

std::vector<EpochStats> BatchReader::stats() const {
  return running_->loader->stats();
}

}  // namespace leat
