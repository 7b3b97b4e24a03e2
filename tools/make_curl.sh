#!/usr/bin/env bash
# Makes the libcurl of slim wheels: HTTP over OpenSSL, and nothing else. Debian's serves all
# protocols, for which it brings 9 MB of libraries (Kerberos, LDAP, SSH, GnuTLS, …).
#   make_curl.sh FOLDER [CMAKE-ARGUMENT...]
# FOLDER/lib/libcurl.so.4 takes the place of Debian's: the same source, with Debian's fixes,
# and the same names of symbols. It stays for a month, if the arguments are the same; then it
# is made anew, with the fixes that Debian has then.
set -euo pipefail
folder=$(realpath -m "$1")
shift
stamp="bookworm $*"
[ "$(find "$folder/made" -mtime -30 -exec cat {} + 2> /dev/null)" = "$stamp" ] && exit
rm -rf "$folder"
mkdir -p "$folder/apt/lists/partial" "$folder/lib"
cd "$folder"

echo "curl: taking Debian's source, and compiling it for HTTP alone" >&2
key=/usr/share/keyrings/debian-archive-keyring.gpg
cat > apt/sources.list << SOURCES
deb-src [signed-by=$key] http://deb.debian.org/debian bookworm main
deb-src [signed-by=$key] http://deb.debian.org/debian-security bookworm-security main
SOURCES
apt=(apt-get -qq -o Dir::Etc::SourceList="$folder/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
     -o Dir::State::Lists="$folder/apt/lists" -o APT::Sandbox::User=root)
{ "${apt[@]}" update && "${apt[@]}" source --download-only curl; } > log 2>&1 || { cat log >&2; exit 1; }
dpkg-source --no-check -x ./*.dsc source > log 2>&1 || { cat log >&2; exit 1; }

# Programs linked with Debian's libcurl ask for symbols of this version.
echo 'CURL_OPENSSL_4 { global: curl_*; local: *; };' > symbols
cmake -S source -B build -G Ninja "$@" -DCMAKE_BUILD_TYPE=MinSizeRel -DBUILD_CURL_EXE=OFF -DBUILD_TESTING=OFF \
  -DHTTP_ONLY=ON -DENABLE_UNIX_SOCKETS=OFF -DUSE_LIBIDN2=OFF -DCURL_USE_LIBPSL=OFF -DCURL_USE_LIBSSH2=OFF \
  -DCURL_DISABLE_NTLM=ON -DCURL_ZLIB=OFF -DCURL_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt \
  -DCMAKE_SHARED_LINKER_FLAGS="-Wl,--version-script=\"$folder/symbols\"" > log 2>&1 || { cat log >&2; exit 1; }
cmake --build build --target libcurl -j "$(nproc)" > log 2>&1 || { cat log >&2; exit 1; }
cp -L build/lib/libcurl.so.4 lib/
rm -rf apt source build ./*.dsc ./*.tar.* log
echo "$stamp" > made
