#include "leat/api/batch_reader.h"

#include <new>
#include <system_error>
#include <utility>

#include "leat/api/loader_options_of.h"
#include "leat/base/env.h"
#include "leat/base/errors.h"
#include "leat/engine/loader/loader.h"
#include "leat/engine/unindexed.h"

namespace leat {

namespace {

/// Calls, and makes an error of memory or threads that the system refuses.
template <class Call>
auto without_exceptions(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kResourceExhausted,
                 "there is no memory left for a reader's batches; give it less "
                 "with memory_bytes, or smaller batches");
  } catch (const std::system_error& error) {  // No more threads.
    return Error(ErrorCode::kResourceExhausted, error.what());
  }
}

}  // namespace

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
  return without_exceptions([&]() -> Result<BatchReader> {
    const Env env = process_env();
    LEAT_TRY(LoaderOptions loader_options, loader_options_of(options));
    LEAT_TRY(LoaderSource source,
             open_for_loader(url, store_options_of(options.storage), {},
                             loader_options, env, stop));
    LEAT_TRY_VOID(check_objects_are_samples(source, url));
    auto running = std::make_unique<Running>();
    LEAT_TRY(running->loader,
             Loader::open(std::move(source), std::move(loader_options), env));
    return BatchReader(std::move(running));
  });
}

Result<void> BatchReader::begin() {
  return without_exceptions([&]() -> Result<void> {
    LEAT_TRY(running_->iteration, running_->loader->begin());
    return {};
  });
}

Result<std::optional<Batch>> BatchReader::next() {
  if (!running_->iteration) {
    return invalid("next() before begin(); call begin() once an epoch");
  }
  return without_exceptions([&]() -> Result<std::optional<Batch>> {
    LEAT_TRY(Loader::Next next, running_->loader->next(*running_->iteration));
    std::optional<Batch> batch;
    if (!next.is_end()) batch = std::move(next.batch());
    return batch;
  });
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
