#include "leat/store/page_builder.h"

#include <utility>

namespace leat {

std::string after_prefix(std::string_view prefix) {
  std::string result(prefix);
  while (!result.empty()) {
    const auto last = static_cast<unsigned char>(result.back());
    if (last != 0xff) {
      result.back() = static_cast<char>(last + 1);
      return result;
    }
    result.pop_back();
  }
  return result;
}

PageBuilder::PageBuilder(const ListRequest& request, std::size_t most_entries)
    : prefix_(request.prefix),
      delimiter_(request.delimiter),
      most_entries_(most_entries),
      from_(request.prefix) {
  std::string start = request.resume;
  if (start.empty() && !request.start_after.empty()) {
    start = request.start_after + '\0';
  }
  if (start > from_) from_ = std::move(start);
}

PageBuilder::Verdict PageBuilder::offer(std::string_view key) {
  if (is_past_the_end_ || key < from_ || !key.starts_with(prefix_)) {
    return Verdict::kSkip;
  }
  if (entries_ == most_entries_) {
    page_.resume = from_;
    return Verdict::kFull;
  }
  ++entries_;
  const std::size_t folds_at = delimiter_.empty()
                                   ? std::string_view::npos
                                   : key.find(delimiter_, prefix_.size());
  if (folds_at == std::string_view::npos) {
    from_.assign(key).push_back('\0');
    return Verdict::kTake;
  }
  const std::string_view folded = key.substr(0, folds_at + delimiter_.size());
  page_.common_prefixes.emplace_back(folded);
  from_ = after_prefix(folded);
  is_past_the_end_ = from_.empty();
  return Verdict::kFold;
}

void PageBuilder::add(ObjectInfo object) {
  page_.objects.push_back(std::move(object));
}

ListPage PageBuilder::finish() && { return std::move(page_); }

}  // namespace leat
