import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { anchorsOf, slug } from './anchors';
import { pages, proseOf, ROOT, textOf } from './pages';

const INLINE = /!?\[(?:[^\]\\]|\\.|\[[^\]]*\])*\]\(\s*<?([^\s)>]+)>?(?:\s+["'][^)]*["'])?\s*\)/g;
const DEFINED = /^ {0,3}\[[^\]]+\]:\s+<?(\S+?)>?(?:\s.*)?$/gm;
const HTML = /<(?:a|img|source)\s[^>]*?(?:href|src|srcset)="([^"]+)"/g;

/** Where packages come from is everybody's own setting, and not for pages to say. */
const REGISTRY = /^(registry|mirrors?|index|deb|static|packages)\./;

function linksOf(text: string): string[] {
  // Code is blanked, so the words of a link may be blank; its target is not.
  const prose = proseOf(text);
  return [INLINE, DEFINED, HTML].flatMap((form) => [...prose.matchAll(form)].map((match) => match[1] as string));
}

const registryHost = new URL(
  execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8', stdio: 'pipe' }).trim(),
).host;

/** What is wrong with a link, if anything is. */
function faultOf(page: string, link: string): string | undefined {
  if (/^[a-z][a-z0-9+.-]*:/i.test(link)) return faultOfAddress(link);
  const [target = '', anchor] = link.split('#');
  if (target.startsWith('/')) return 'begins with "/": GitHub takes it for its own root';
  const file = target === '' ? page : path.posix.join(path.posix.dirname(page), decodeURIComponent(target));
  if (file.startsWith('..')) return 'leads out of the repository';
  if (!existsSync(path.join(ROOT, file))) return `there is no ${file}`;
  if (anchor === undefined) return undefined;
  if (!file.endsWith('.md')) return `${file} has no headings to link to`;
  return anchorsOf(textOf(file)).has(decodeURIComponent(anchor)) ? undefined : `${file} has no heading for #${anchor}`;
}

function faultOfAddress(link: string): string | undefined {
  if (!URL.canParse(link)) return 'is not an address';
  const { protocol, host, username } = new URL(link);
  if (protocol !== 'https:') return 'is not https';
  if (!host.includes('.') || username) return 'names no public host';
  return host === registryHost || REGISTRY.test(host) ? 'is of a registry' : undefined;
}

describe('links', () => {
  test('are found in all their forms', () => {
    const text =
      '[a](x.md "t") ![b](<y.png>) [`c`](z.md#c)\n\n[d]: ./w.md\n<img src="v.svg"> `[e](no.md)`\n\n```md\n[f](no.md)\n```\n';
    expect(linksOf(text).sort()).toEqual(['./w.md', 'v.svg', 'x.md', 'y.png', 'z.md#c']);
  });

  test('lead to headings by the names that GitHub gives them', () => {
    expect(slug('What `exec()` gives: the _result_')).toBe('what-exec-gives-the-result');
    expect(slug('Node.js & Bun')).toBe('nodejs--bun');
    expect(slug('`COFFERDAM_BACKEND`')).toBe('cofferdam_backend');
    expect([...anchorsOf('# A\n## A\n```sh\n# no\n```\n<a id="here"></a>')]).toEqual(['a', 'a-1', 'here']);
  });

  test('that are dead are told', () => {
    expect(faultOf('README.md', 'docs/nowhere.md')).toBe('there is no docs/nowhere.md');
    expect(faultOf('README.md', 'CONTRIBUTING.md#nowhere')).toBe('CONTRIBUTING.md has no heading for #nowhere');
    expect(faultOf('README.md', '../secrets')).toBe('leads out of the repository');
    expect(faultOf('README.md', 'http://example.com/')).toBe('is not https');
    expect(faultOf('README.md', 'https://registry.example.com/cofferdam')).toBe('is of a registry');
    expect(faultOf('README.md', 'https://example.com/')).toBeUndefined();
  });

  test.each(pages)('of %s are alive', (page) => {
    const dead = linksOf(textOf(page)).flatMap((link) => {
      const fault = faultOf(page, link);
      return fault ? [`${link}: ${fault}`] : [];
    });
    expect(dead).toEqual([]);
  });
});
