import * as cofferdam from 'cofferdam';
import { visit } from './visit.cjs';

test('a sandbox answers beside another test file', () => visit(cofferdam));
