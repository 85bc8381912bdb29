// How a page of the API reference looks: the signature says all types once, with links; then the prose; then the example.

import { ReflectionKind } from 'typedoc';
import { MarkdownTheme, MarkdownThemeContext, MemberRouter } from 'typedoc-plugin-markdown';

/** Exported as types, because nobody makes one. */
const CLASSES = new Set(['Files']);

/** Of tags that need no words: an example is seen to be one, and what `@ts-ignore` says is the text itself. */
const HEADINGS = /^(#+ |\*\*)(Examples?|Ts-?[iI]gnore)(\*\*)?\n+/gm;

/** TypeDoc calls this, because the options name this file as a plugin. */
export function load(app) {
  app.renderer.defineTheme('cofferdam', Theme);
  app.renderer.defineRouter('cofferdam', Router);
}

/** A page per entry point, and one per class beside them: `ai.md`, `cofferdam.md`, `Sandbox.md`. */
class Router extends MemberRouter {
  buildChildPages(reflection, pages) {
    // A class that is exported as a type only is an interface to TypeDoc.
    const isClass = reflection.kindOf(ReflectionKind.Class) || CLASSES.has(reflection.name);
    this.membersWithOwnFile = isClass ? [ReflectionKind.singularString(reflection.kind)] : [];
    super.buildChildPages(reflection, pages);
  }

  getIdealBaseName(reflection) {
    if (reflection.kindOf(ReflectionKind.Module)) return reflection.name.replace(/^cofferdam\//, '');
    return reflection.name;
  }
}

class Theme extends MarkdownTheme {
  getRenderContext(page) {
    return new Context(this, page, this.application.options);
  }
}

class Context extends MarkdownThemeContext {
  constructor(...args) {
    super(...args);
    const { comment } = this.partials;
    this.partials = {
      ...this.partials,
      // In the signature already.
      signatureReturns: () => '',
      inheritance: () => '',
      hierarchy: () => '',
      comment: (model, options) => comment(model, options).replace(HEADINGS, ''),
    };
  }
}
