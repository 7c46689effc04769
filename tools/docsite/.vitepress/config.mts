// The configuration of the documentation site. Its pages, the navigation and the texts of
// the home page are made by `docsite stage`, out of docs/ and README.md.
import { defineConfig } from 'vitepress'
import site from './site.json' with { type: 'json' }

// GitHub's names of headings, so that a link to a heading works there and here: lower
// case, without marks, blanks as dashes.
const slugify = (text: string) =>
  text.toLowerCase().replaceAll(' ', '-').replace(/[^\p{L}\p{N}_-]/gu, '')

// The language of an indented block, for its colours.
const language = (code: string) =>
  /^(samya|samya-lab|bin\/|curl|make|go |docker|npm|pip|export|sudo|git|\.\.?\/)/.test(code.trimStart()) ? 'sh' : 'text'

export default defineConfig({
  title: 'samya',
  description: site.description,
  lang: 'en',
  base: process.env.DOCS_BASE ?? '/',
  outDir: '../docs-site',
  cacheDir: './cache',
  // The index of the search is a large chunk, loaded at the first search.
  vite: { build: { chunkSizeWarningLimit: 4096 } },
  // docsite check looks at all links of what is built, headings too.
  ignoreDeadLinks: true,
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  markdown: {
    html: false,
    anchor: { slugify },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config(md) {
      md.renderer.rules.code_block = (tokens, i, options, env, self) => {
        tokens[i].info = language(tokens[i].content)
        return md.renderer.rules.fence!(tokens, i, options, env, self)
      }
      // A wide table scrolls within the page, and keys reach it.
      md.renderer.rules.table_open = () => '<div class="table" tabindex="0"><table>\n'
      md.renderer.rules.table_close = () => '</table></div>\n'
      // Braces in a text are text, not an expression of Vue.
      const text = md.renderer.rules.text!
      md.renderer.rules.text = (...all) => text(...all).replaceAll('{{', '&#123;&#123;')
    },
  },
  themeConfig: {
    nav: [
      { text: 'Quickstart', link: '/quickstart' },
      { text: 'Concepts', link: '/concepts' },
      { text: 'HTTP API', link: '/reference-http' },
      { text: 'Changes', link: '/changelog' },
    ],
    sidebar: site.sidebar,
    outline: { level: [2, 3] },
    search: {
      provider: 'local',
      options: { detailedView: true, miniSearch: { searchOptions: { boost: { title: 6, titles: 3, text: 1 } } } },
    },
    socialLinks: [{ icon: 'github', link: site.repository }],
    editLink: { pattern: ({ frontmatter }) => frontmatter.source, text: 'The source of this page' },
  },
})
