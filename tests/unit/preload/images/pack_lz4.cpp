// pack_lz4 PTX OUTPUT: writes a one-entry fatbin around PTX text packed with LZ4, which nvcc 13 no longer does.
#include <lz4.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

int main(int argument_count, char** arguments) {
  if (argument_count != 3) return 2;
  std::ifstream input(arguments[1], std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(input), {}};
  std::vector<char> packed(static_cast<size_t>(LZ4_compressBound(static_cast<int>(text.size()))));
  const int size =
      LZ4_compress_default(text.data(), packed.data(), static_cast<int>(text.size()), static_cast<int>(packed.size()));
  const uint32_t packed_bytes = static_cast<uint32_t>(size);
  const uint64_t padded = (packed_bytes + 7u) & ~uint64_t{7};
  packed.resize(padded);
  uint32_t entry[16] = {};
  const uint64_t flags = 0x2000;
  const uint64_t unpacked = text.size();
  entry[0] = 0x01010001;  // version and kind: PTX
  entry[1] = sizeof entry;
  std::memcpy(&entry[2], &padded, 8);
  entry[4] = packed_bytes;
  entry[7] = 90;
  std::memcpy(&entry[10], &flags, 8);
  std::memcpy(&entry[14], &unpacked, 8);
  const uint32_t header[2] = {0xba55ed50, 0x00100001};
  const uint64_t body = sizeof entry + padded;
  std::ofstream output(arguments[2], std::ios::binary);
  output.write(reinterpret_cast<const char*>(header), sizeof header);
  output.write(reinterpret_cast<const char*>(&body), sizeof body);
  output.write(reinterpret_cast<const char*>(entry), sizeof entry);
  output.write(packed.data(), static_cast<std::streamsize>(padded));
  return output.good() ? 0 : 1;
}
