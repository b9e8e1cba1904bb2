#!/bin/bash
# Builds etcd's and Kubernetes 1.20.2's programs from Debian's packages into the folder $1 (some 10 minutes of CPU).
# Needs apt; installs a Go toolchain, and touches neither apt's own lists of sources nor anything else of the system.
set -euo pipefail
target=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/geokfp-kubernetes.XXXXXX")
trap 'rm -rf "$work"' EXIT

missing=()
for program in jq rsync make; do command -v "$program" >/dev/null || missing+=("$program"); done
[ -x /usr/lib/go-1.19/bin/go ] || missing+=(golang-1.19-go)
command -v dpkg-source >/dev/null || missing+=(dpkg-dev)
apt-get update -qq
if [ ${#missing[@]} -gt 0 ]; then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

# Source packages, by lists of their own beside apt's.
mkdir -p "$work"/apt/{lists/partial,archives/partial} "$work"/{download,packages,bin}
mirror=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' | awk '$1 == "bookworm" && $2 == "main" && !found++ { print $3 }')
mirror=${mirror:-http://deb.debian.org/debian/}
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm main" > "$work/apt/sources.list"
options=(-o "Dir::Etc::sourcelist=$work/apt/sources.list" -o "Dir::Etc::sourceparts=$work/apt/none"
         -o "Dir::State::lists=$work/apt/lists" -o "Dir::Cache=$work/apt" -o APT::Sandbox::User=root)
cd "$work/download"
apt-get "${options[@]}" update -qq
apt-get "${options[@]}" source -qq --download-only kubernetes
apt-get -o APT::Sandbox::User=root download -qq golang-github-modern-go-reflect2-dev etcd-server
for package in *.deb; do dpkg -x "$package" "$work/packages"; done

mkdir "$work/source"
tar -xf kubernetes_*.orig.tar.* -C "$work/source" --strip-components 1
cd "$work/source"
# The vendored reflect2 brings the API server down at the first custom object when Go is newer than 1.17.
rm -rf vendor/github.com/modern-go/reflect2
cp -r "$work/packages/usr/share/gocode/src/github.com/modern-go/reflect2" vendor/github.com/modern-go/reflect2
rm -f vendor/github.com/modern-go/reflect2/*_test.go

mkdir -p .go/src/k8s.io
ln -s "$work/source" .go/src/k8s.io/kubernetes
cat > version.sh <<VERSION
KUBE_GIT_COMMIT=0000000000000000000000000000000000000000
KUBE_GIT_TREE_STATE=archive
KUBE_GIT_VERSION=v1.20.2
KUBE_GIT_MAJOR=1
KUBE_GIT_MINOR=20
VERSION
export GO111MODULE=off GOPROXY=off CGO_ENABLED=0 GOPATH="$PWD/.go" GOCACHE="$work/cache" PATH="/usr/lib/go-1.19/bin:$PATH"
export KUBE_GIT_VERSION_FILE="$PWD/version.sh" KUBE_BUILD_PLATFORMS=linux/amd64
cd .go/src/k8s.io/kubernetes
make WHAT="cmd/kube-apiserver cmd/kube-controller-manager" GOLDFLAGS="-s -w"
find _output -name kube-apiserver -type f -exec cp {} "$work/bin/" \;
find _output -name kube-controller-manager -type f -exec cp {} "$work/bin/" \;
cp "$work/packages/usr/bin/etcd" "$work/bin/etcd"
test -x "$work/bin/kube-apiserver" -a -x "$work/bin/kube-controller-manager"

mkdir -p "$(dirname "$target")"
mv "$work/bin" "$target.$$"
mv -T "$target.$$" "$target"
