// The loops that change colours, in SIMD as those of kernels.h: exact, every
// machine gets the same bytes. None reads or writes beyond what it is given.
#pragma once
#include <cstddef>
#include <cstdint>

namespace leat {

/// The grey of each of `width` pixels of RGB: Pillow's luma, in 16 bits.
void grey_of_rgb(const std::uint8_t* rgb, std::size_t width,
                 std::uint8_t* grey);

/// The first channel of each of `width` pixels of RGB.
void first_of_rgb(const std::uint8_t* rgb, std::size_t width,
                  std::uint8_t* into);

/// Gives each pixel its grey in all three channels. `into` may be `rgb`.
void make_rgb_grey(const std::uint8_t* rgb, std::size_t width,
                   std::uint8_t* into);

/// Moves each pixel away from its grey, or to it: see blend_bytes().
void saturate_rgb(std::uint8_t* rgb, std::size_t width, float amount);

/// Adds `steps` to each pixel's hue, out of 256 for a full circle, as Pillow
/// does by way of its HSV: there and back, with its roundings.
void turn_hue(std::uint8_t* rgb, std::size_t width, std::uint8_t steps);

/// bytes[i] = from + amount * (bytes[i] - from), cut off to 0 … 255.
void blend_from(int from, std::uint8_t* bytes, std::size_t count, float amount);

/// Inverts the bytes that are as large as the threshold or larger.
void invert_from(int threshold, std::uint8_t* bytes, std::size_t count);

/// The pixels of a row from right to left, of `channels` bytes each: those of
/// 1 and 3 in SIMD, others, as the 2 and 6 of 16 bits, in a plain loop. `into`
/// lies elsewhere.
void mirror_row(const std::uint8_t* from, std::size_t width,
                std::uint32_t channels, std::uint8_t* into);

}  // namespace leat
