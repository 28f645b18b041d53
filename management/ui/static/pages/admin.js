// Who may log in and do what, virtual hosts, and what the node is told: tabs, each an address of its own.
import {html} from "../html.js";
import {link} from "../route.js";
import {Import} from "./imports.js";
import {Configuration, Flags, Parameters} from "./settings.js";
import {Permissions} from "./rights.js";
import {Shovels} from "./shovels.js";
import {User, Users} from "./users.js";
import {Vhost, Vhosts} from "./vhosts.js";

const TABS = [
  ["users", "Users", Users, User], ["vhosts", "Virtual hosts", Vhosts, Vhost], ["permissions", "Permissions", Permissions],
  ["parameters", "Parameters", Parameters], ["shovels", "Shovels", Shovels], ["import", "Import", Import], ["flags", "Feature flags", Flags], ["configuration", "Configuration", Configuration],
];

export function Admin(props) {
  const {route, user} = props;
  if (!user.tags.includes("administrator")) {
    return html`<p class="empty">Users, permissions and settings are for users with the tag administrator. This user has: ${user.tags.join(", ") || "none"}.</p>`;
  }
  const [, tab = "users", ...rest] = route.parts;
  const [name, , Many, One] = TABS.find(([each]) => each === tab) ?? TABS[0];
  const Page = One && rest.length === 1 ? One : Many;
  return html`<nav class="tabs" aria-label="Administration">${TABS.map(([each, title]) => html`<a key=${each} href=${link(["admin", each])}
      aria-current=${each === name ? "page" : undefined}>${title}</a>`)}</nav>
    <${Page} ...${props} name=${rest[0]} />`;
}
