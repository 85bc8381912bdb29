/** A small project to search in: hidden, ignored and deep files, most with a needle. */
export const PROJECT = {
  'p/.gitignore': '*.log\n/dist/\n',
  'p/.git/config': 'needle\n',
  'p/.env': 'needle=1\n',
  'p/README.md': '# Title\n\nA Needle here\n',
  'p/trace.log': 'needle\n',
  'p/dist/out.js': 'needle\n',
  'p/src/main.ts': 'import x;\nconst needle = 1;\nexport { needle };\n',
  'p/src/deep/util.ts': 'one\ntwo\nneedle\nfour\nfive\n',
  'p/src/deep/.gitignore': '!kept.log\nsecret*\n',
  'p/src/deep/kept.log': 'needle\n',
  'p/src/deep/secret.txt': 'needle\n',
  'p/src/deep/dist/in.js': 'needle\n',
};
