#!/bin/sh
# Runs in a Debian that .ci/images.sh makes for it: compiles Python and what it
# needs with musl, where the Alpine images have it, and leaves the tar of a
# userland of that Python and busybox. Its threads have the stacks of musl,
# 128 KiB, where Alpine asks for 1 MiB.
#
#   musl.sh VERSION
set -eu
version=$1
jobs=$(nproc)
export MAKEFLAGS="-j$jobs" LC_ALL=C.UTF-8

# Debian's musl-gcc is made for programs that need no kernel headers, and says
# that it compiles for glibc.
for part in linux asm-generic; do ln -s /usr/include/$part /usr/include/x86_64-linux-musl/$part; done
ln -s /usr/include/x86_64-linux-gnu/asm /usr/include/x86_64-linux-musl/asm
cat >/usr/local/bin/cc-musl <<'EOF'
#!/bin/sh
for arg in "$@"; do
	case $arg in --print-multiarch | -print-multiarch) echo x86_64-linux-musl && exit ;; esac
done
exec musl-gcc -U__gnu_linux__ "$@"
EOF
chmod +x /usr/local/bin/cc-musl
export CC=cc-musl CFLAGS="-O2 -fPIC" AR=ar RANLIB=ranlib
deps=/deps

# The sources as their authors published them, without Debian's changes.
mkdir -p /src /out
cd /src
apt-get -qq -o APT::Sandbox::User=root source --download-only zlib libffi sqlite3 openssl "python$version"
for file in ./*.orig.tar.*; do
	case $file in *.asc) continue ;; esac
	name=${file#./} && name=${name%%_*}
	mkdir "$name" && tar -C "$name" --strip-components=1 -xf "$file"
done

(cd zlib && ./configure --static --prefix=$deps && make libz.a && make install)
(cd libffi && autoreconf -i && ./configure --disable-shared --disable-docs --disable-multi-os-directory --disable-builddir --prefix=$deps && make && make install)
(cd sqlite3 && ./configure --disable-shared --disable-tcl --disable-readline --prefix=$deps && make sqlite3.c sqlite3.h &&
	cc-musl -O2 -fPIC -DSQLITE_THREADSAFE=1 -c sqlite3.c && ar rcs $deps/lib/libsqlite3.a sqlite3.o && cp sqlite3.h $deps/include)
(cd openssl && ./Configure linux-x86_64 no-shared no-tests no-apps no-docs no-module no-engine --prefix=$deps --libdir=lib --openssldir=/etc/ssl &&
	make build_libs && make install_dev)

cd "python$version"
export PKG_CONFIG_LIBDIR=$deps/lib/pkgconfig CPPFLAGS="-I$deps/include" LDFLAGS="-L$deps/lib -Wl,--strip-all"
./configure --prefix=/usr/local --enable-shared --without-ensurepip --disable-test-modules --with-openssl=$deps --without-readline
make
make install DESTDIR=/out

# Alpine's loader is at the same place.
mkdir -p /out/lib /out/bin /out/etc /out/tmp /out/root
cp -L /usr/lib/x86_64-linux-musl/libc.so /out/lib/ld-musl-x86_64.so.1
cp -L "$(command -v busybox)" /out/bin/busybox
for tool in $(busybox --list); do [ -e "/out/bin/$tool" ] || ln -s busybox "/out/bin/$tool"; done
echo 'root:x:0:0:root:/root:/bin/sh' >/out/etc/passwd
echo 'root:x:0:' >/out/etc/group
rm -rf /out/usr/local/share /out/usr/local/include /out/usr/local/lib/python"$version"/config-* /out/usr/local/lib/pkgconfig
find /out -name __pycache__ -prune -exec rm -rf {} +
tar -C /out -cf /userland.tar .
