#!/usr/bin/env bash
# Builds, lints or tests the page in frontend-example/, or says in one line what is missing for that.
# In CI what is missing is a failure; so it is nowhere else, as Sapwood needs no page.
set -eu
cd "$(dirname "$0")/../frontend-example"

leave_out() {
  echo "The page is left out: $1"
  [ -z "${CI:-}" ]
  exit
}

node -e 'const [major, minor] = process.versions.node.split("."); process.exit(+(+major < 20 || (major === "20" && +minor < 19)))' \
  2>/dev/null || leave_out "it needs Node.js 20.19 or later"
command -v npm >/dev/null || leave_out "it needs npm"
if [ "$1" = test ]; then
  CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
  [ -n "$CHROMIUM" ] || leave_out "its tests need Chromium"
  export CHROMIUM
fi

if [ package-lock.json -nt node_modules/.package-lock.json ]; then
  echo "Installing what the page is built with"
  npm ci --silent || leave_out "npm could not install its packages"
fi

build() {
  if [ ! -f dist/index.html ] ||
    [ -n "$(find src public *.ts *.json index.html ../schema/schema.graphql -newer dist/index.html -print -quit)" ]; then
    npm run --silent build -- --logLevel warn >build.log 2>&1 || { cat build.log; exit 1; }
  fi
}

case $1 in
  build) build ;;
  lint) npm run --silent check ;;
  test) build && npm test --silent && npm run --silent test:browser ;;
esac
