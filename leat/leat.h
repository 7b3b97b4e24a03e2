// Leat for programs in C++: batches of a dataset, read ahead of training.
#pragma once
#include "leat/api/batch_reader.h"
#include "leat/api/reader_options.h"
