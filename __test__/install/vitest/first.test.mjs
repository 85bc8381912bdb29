import * as cofferdam from 'cofferdam';
import { visit } from './visit.cjs';

test('a sandbox answers', () => visit(cofferdam));
