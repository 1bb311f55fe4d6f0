# To be sourced at the root of this repository. Goes into a scratch copy of it, with all that git would add, as the first
# commit of a repository of its own. The copy is removed at the end. The caller's git commands there need no configuration.
git() { command git -c safe.directory='*' -c user.name=scratch -c user.email=scratch@example.com "$@"; }

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -co --exclude-standard -z | tar --null -T - -cf - | tar -xf - -C "$copy"
cd "$copy"
git init -q
git add -A
git commit -qm 'As it is'
