// toy://box/prefix: eight small objects in memory, the same in every box. It is
// added as leat/store/README.md says.

#include "leat/store/memory/memory_store.h"
#include "tests/scheme/schemes.h"

namespace leat {
namespace {

constexpr SchemeOption kOptions[] = {{"toy_room", "where the box stands"}};

MemoryObjects objects() {
  MemoryObjects all;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    all["train/" + std::string(name) + ".bin"] =
        std::string("bytes of ") + name;
  }
  return all;
}

Result<Driver> open_toy(const Url& url, const StoreOptions& options, const Env&,
                        Metrics*) {
  const std::string room = options.option_of_scheme("toy_room");
  if (!room.empty() && room != "nursery") {
    return Error(ErrorCode::kInvalidArgument,
                 "a toy is in the nursery; give toy_room=\"nursery\", or none");
  }
  Driver driver;
  driver.prefix = url.path;
  driver.identity = url.text();
  driver.store = open_memory_store(objects(), {.url = url.bucket() + "/"});
  return driver;
}

std::vector<Diagnosis> diagnose_toy(const Url& url, const StoreOptions&,
                                    const Env&, const std::stop_token&) {
  return {{.check = "toy", .found = url.authority + " is open"}};
}

}  // namespace

constinit const Scheme kToyScheme = {"toy", open_toy, diagnose_toy, kOptions};

}  // namespace leat
